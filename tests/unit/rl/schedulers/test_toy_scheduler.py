"""A scheduler of one's own is one file and a preset: it trains, resumes, deploys and is listed like ours."""

import gymnasium
import numpy as np
import pytest
from click.testing import CliRunner
from gymnasium.utils.env_checker import check_env
from helpers.env_toys import scrambled, workload
from helpers.learning_runs import FILES
from helpers.night_shift import DAY, SLEEP, START, WAIT
from helpers.policy_toys import platform

from decision.batsim.agent import Agent
from decision.cli.app import app
from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.reference.engine import ReferenceEngine
from decision.engine.rules import EngineOptions
from decision.experiments.run import simulate_by_messages
from decision.files import write_platform, write_workload
from decision.model.errors import ConfigError
from decision.policies import find_policy, list_policies
from decision.rl.envs import evaluate, make_setup
from decision.rl.schedulers import ChoosingPolicy
from decision.simulation import simulate_workloads, try_policy

HOSTS = 6
PLATFORM = platform(HOSTS, sleeps=True, wake=150.0, doze=6.0)
ENERGY = EngineOptions(energy=True)


def days(count: int = 3, jobs: int = 12):
    """Jobs of an hour or so, most of them in the morning."""
    rng = np.random.default_rng(1)
    submit = np.sort((np.arange(count)[:, None] * DAY + 6 * 3600 + rng.integers(0, 30_000, (count, jobs))).ravel())
    run = rng.integers(60, 7200, count * jobs)
    size = rng.choice([1, 1, 2, 4, HOSTS], count * jobs)
    return workload(HOSTS, *zip(submit.tolist(), size.tolist(), (run + 60).tolist(), run.tolist(), strict=True))


def setup(jobs=None, **options):
    return make_setup(jobs or days(), PLATFORM, encoder="night-shift", **options)


def make_env(**options):
    return gymnasium.make("decision/NightShift-v0", workload=days(), platform=PLATFORM, **options)


def test_gymnasium_finds_nothing_wrong():
    check_env(make_env().unwrapped, skip_render_check=True)


def test_a_host_that_sleeps_draws_less_and_the_day_ends_at_midnight():
    env = make_env(pause=DAY, price=1.0).unwrapped
    env.reset(options={"first": 0})
    first = days().jobs[0].submit_time
    assert env.state.now == first
    paid = [env.step(SLEEP)[1] for _ in range(HOSTS)]
    assert paid == pytest.approx([-HOSTS * 95 * first - 0.01] + [-0.01] * (HOSTS - 1)), "from midnight on"
    assert env.action_masks().tolist() == [False, False, True], "nothing is free, and nothing sleeps yet"
    ended, total = False, 0.0
    for _ in range(200):
        _, reward, terminated, truncated, info = env.step(WAIT)
        total += reward
        if ended := terminated or truncated:
            break
    assert (ended, terminated, truncated) == (True, False, True)
    assert env.state.now == pytest.approx(DAY)
    joules = HOSTS * (95 * first + 100 * 6 + 9 * (DAY - first - 6))
    assert info["metrics"]["joules"] == pytest.approx(joules)


def test_steps_are_a_cap_and_cut_an_episode_off():
    env = make_env(steps=7).unwrapped
    env.reset(options={"first": 0})
    ends = [env.step(WAIT)[2:4] for _ in range(7)]
    assert ends == [(False, False)] * 6 + [(False, True)]


def test_a_count_of_jobs_terminates():
    env = make_env(jobs=None).unwrapped
    env.reset(options={"first": 24})
    terminated = truncated = False
    while not (terminated or truncated):
        _, _, terminated, truncated, info = env.step(START if env.action_masks()[START] else WAIT)
    assert (terminated, truncated) == (False, True), "the day goes on when its jobs are over"
    assert info["metrics"]["arrived"] == 12


def test_episodes_begin_at_the_rows_that_they_shall_begin_at():
    env = make_env().unwrapped
    seen = set()
    for seed in range(20):
        env.reset(seed=seed)
        seen.add(float(env.state.submit_time[0]))
    assert len(seen) == 3
    with pytest.raises(ConfigError, match="first: must be one of 3 jobs from 0 to 24"):
        env.reset(options={"first": 5})


def choose(observation, mask):
    return int(scrambled(observation, mask)[0])


@pytest.mark.parametrize("seed", [0, 1])
def test_the_schedule_is_the_same_everywhere(seed, monkeypatch):
    jobs = days(2, 20 + seed)
    encoder = setup(jobs).encoder
    simulated = simulate_workloads(PLATFORM, [jobs], ChoosingPolicy(encoder, choose), engine_options=ENERGY)
    assert simulated.energy is not None
    monkeypatch.setattr("decision.batsim.agent.find_policy", lambda name, options: ChoosingPolicy(encoder, choose))
    for engine in (EmbeddedEngine, ReferenceEngine):
        messages = simulate_by_messages(engine(PLATFORM, [jobs], (), ENERGY), Agent("any", {}, platform=PLATFORM))
        assert _schedule(messages) == _schedule(simulated)


def _schedule(record):
    jobs = record.jobs
    return dict(zip(jobs.id, zip(jobs.start_time.tolist(), jobs.allocation, strict=True), strict=True))


def test_the_environment_is_the_first_day_of_a_simulation():
    jobs = days(1, 20)
    made = setup(jobs, steps=100_000)
    encoder = made.encoder
    simulated = simulate_workloads(PLATFORM, [jobs], ChoosingPolicy(encoder, choose), engine_options=ENERGY)
    starts = simulated.jobs.start_time[np.lexsort((simulated.jobs.id, simulated.jobs.submit_time))]
    placed = []
    evaluate(scrambled, made, first=[0], placed=placed)
    submit = np.array([job.submit_time for job in jobs.jobs])
    today = starts < DAY
    assert today.sum() > 10
    assert placed[0].wait == pytest.approx((starts - submit)[today])


def test_it_keeps_the_rules_of_all_policies():
    encoder = setup().encoder
    assert try_policy(lambda: ChoosingPolicy(encoder, choose)) == []


@pytest.fixture
def inputs(tmp_path):
    write_platform(tmp_path / "p.xml", PLATFORM)
    write_workload(tmp_path / "w.json", days())
    return ("-p", str(tmp_path / "p.xml"), "-w", str(tmp_path / "w.json"))


def cli(*arguments):
    result = CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "120"})
    assert result.exit_code == 0, result.output
    return result.stdout


def test_it_is_trained_shown_listed_and_run_from_the_command_line(inputs, tmp_path):
    pytest.importorskip("torch")
    cli("train", "night-shift", *inputs, "-o", tmp_path, "--steps", "256")
    assert "night-shift" in cli("show", tmp_path / "night-shift.ckpt")
    assert "puts hosts to sleep" in cli("policies")
    cli("run", *inputs, "--policy", tmp_path / "night-shift.ckpt", "-o", tmp_path / "out", "--energy", "--force")
    assert (tmp_path / "out" / "out_jobs.csv").exists()


def test_it_resumes_bit_by_bit_and_deploys_under_messages(tmp_path):
    pytest.importorskip("torch")
    from decision.rl.learning.config import load_config
    from decision.rl.learning.schedulers import TrainingInputs, train_scheduler

    config = load_config("night_shift", ["learn.steps=512"])
    whole = train_scheduler(TrainingInputs(PLATFORM, days(), FILES), config, tmp_path / "whole")
    stops = iter([False, True])
    train_scheduler(TrainingInputs(PLATFORM, days(), FILES), config, tmp_path / "parts", stop=lambda: next(stops))
    parts = train_scheduler(TrainingInputs(PLATFORM, days(), FILES), config, tmp_path / "parts", resume=True)
    assert parts.read_bytes() == whole.read_bytes()
    simulated = simulate_workloads(PLATFORM, [days()], str(whole), engine_options=ENERGY)
    messages = simulate_by_messages(
        EmbeddedEngine(PLATFORM, [days()], (), ENERGY), Agent(str(whole), {}, platform=PLATFORM)
    )
    assert _schedule(messages) == _schedule(simulated)


def test_it_is_listed_next_to_ours():
    lines = {line.name: line for line in list_policies()}
    assert lines["night-shift.ckpt"].summary.startswith("puts hosts to sleep")
    with pytest.raises(ConfigError):
        find_policy("night-shift")
