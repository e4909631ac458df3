"""DeepScheduling: its presets learn by days, and a checkpoint makes the same schedule everywhere."""

import csv
import json

import numpy as np
import pytest
from click.testing import CliRunner
from helpers.day_toys import ENERGY, busy_days_of
from helpers.policy_toys import platform

from decision.batsim.agent import Agent
from decision.cli.app import app
from decision.engine.batsim4 import EmbeddedEngine
from decision.experiments.run import simulate_by_messages
from decision.experiments.tasks import file_digest
from decision.files import load_workload, write_platform, write_workload
from decision.model.dates import busy_days, of_day, on_days
from decision.rl.envs import DeepSchedulingEnv, make_setup
from decision.rl.learning import find_checkpoint
from decision.rl.learning.checkpoint import read_checkpoint, read_manifest, require_gates, seen_jobs
from decision.rl.learning.config import load_config
from decision.rl.learning.deploy import learned_policy
from decision.rl.schedulers import find_scheduler
from decision.simulation import simulate_workloads

ON = platform(8, sleeps=True, wake=151.5, doze=6.1, cores=4)
DAYS = busy_days_of(4, seed=1, hosts=8)
SHORT = ("learn.steps=512", "learn.rollout=32", "learn.minibatch=64", "learn.epochs=1", "learn.threads=1")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("servers")
    write_platform(folder / "servers.xml", ON)
    write_workload(folder / "days.json", DAYS)
    write_workload(folder / "others.json", busy_days_of(4, seed=2, hosts=8))
    return folder


@pytest.fixture(scope="module", params=["deepscheduling-compact", "deepscheduling-paper"])
def checkpoint(request, files):
    output = files / request.param
    sets = [argument for change in (*SHORT, "learn.envs=8") for argument in ("--set", change)]
    inputs = ("-p", str(files / "servers.xml"), "-w", str(files / "days.json"), "--days", ":3")
    done = CliRunner().invoke(
        app, ["train", "deepscheduling", "--preset", request.param, *inputs, "-o", str(output), *sets]
    )
    assert done.exit_code == 0, done.output
    with (output / "progress.csv").open(newline="") as table:
        rows = list(csv.DictReader(table))
    assert (int(rows[-1]["steps"]), float(rows[-1]["validation_waiting_time"]) > 0) == (512, True)
    return output / "deepscheduling.ckpt"


def test_a_checkpoint_makes_the_same_day_everywhere(checkpoint):
    policy = learned_policy(checkpoint)
    day = busy_days(DAYS)[3]
    alone = of_day(DAYS, day)
    simulated = simulate_workloads(ON, [alone], learned_policy(checkpoint), engine_options=ENERGY)
    told = simulate_by_messages(EmbeddedEngine(ON, [alone], (), ENERGY), Agent(str(checkpoint), {}, platform=ON))
    for one, other in ((told.jobs.start_time, simulated.jobs.start_time), (told.pstates.time, simulated.pstates.time)):
        assert np.array_equal(one, other)
    assert list(told.jobs.allocation) == list(simulated.jobs.allocation)
    assert list(told.pstates.hosts) == list(simulated.pstates.hosts)
    policy.reset(ON, 0)
    env, over = DeepSchedulingEnv(setup=make_setup(DAYS, ON, encoder=policy.encoder)), False
    observation, info = env.reset(options={"first": day.first})
    while not over:
        observation, _, over, cut, info = env.step(policy.actor(observation, info["action_mask"]))
        assert not cut
    starts = dict(zip(simulated.jobs.id, simulated.jobs.start_time.tolist(), strict=True))
    assert [starts[job.id] for job in alone.jobs] == env.state.start_time[: day.jobs].tolist()
    assert info["metrics"]["switches"] > 0


def test_a_checkpoint_knows_the_days_that_it_was_learned_from(checkpoint, files):
    log = load_workload(files / "days.json")
    assert seen_jobs(str(checkpoint), on_days(log, slice(3, None))) == 0
    assert seen_jobs(str(checkpoint), on_days(log, slice(2, None))) == 30
    assert seen_jobs(str(checkpoint), log) == 90
    assert len(file_digest(checkpoint)) == 24, "so that decision compare and decision evaluate --days take it"


@pytest.mark.parametrize(
    "checkpoint",
    [
        "deepscheduling-compact",
        pytest.param("deepscheduling-paper", marks=pytest.mark.nightly),
    ],  # its days are weeks long
    indirect=True,
)
def test_gates_judge_it_beside_first_fit_on_the_same_servers(checkpoint, files):
    inputs = ("-p", str(files / "servers.xml"), "-w")
    seen = CliRunner().invoke(app, ["gates", str(checkpoint), *inputs, str(files / "days.json")])
    assert (seen.exit_code, "gates are for jobs that nothing was learned from" in seen.stderr) == (2, True)
    done = CliRunner().invoke(app, ["gates", str(checkpoint), *inputs, str(files / "others.json"), "--json"])
    gates = {gate["gate"]: gate for gate in json.loads(done.stdout)["gates"]}
    assert list(gates) == [
        *("mean wait", "longest wait", "energy waste", "switches"),
        "jobs that other engines start otherwise",
    ]
    assert gates["jobs that other engines start otherwise"]["passed"]
    assert done.exit_code == (0 if all(gate["passed"] for gate in gates.values()) else 2)
    (kept,) = read_manifest(checkpoint).gates
    assert [gate.found for gate in kept.gates] == [gate["found"] for gate in gates.values()]


def test_the_joint_policy_ships_has_not_learned_its_gates_and_is_turned_by_weights(tmp_path):
    require_gates("joint,energy=0.8")
    assert [check.passed for check in read_manifest(find_checkpoint("joint")).gates] == [False, True]
    done = CliRunner().invoke(app, ["gates", "joint", "-p", "orion_cores", "-w", "orion_days"])
    assert (done.exit_code, "learned from days that are made like those of orion" in done.stderr) == (2, True)
    waste = []
    for turned in ("energy=3", "wait=3"):
        run = ("run", "-p", "orion_cores", "-w", "orion_days", "--select", ":200", "-E", "-o", str(tmp_path / turned))
        done = CliRunner().invoke(app, [*run, "--policy", "joint", "--option", turned, "--json"])
        (row,) = json.loads(done.stdout)["runs"]
        assert 0 < row["waste_bound"] <= row["waste"] < row["energy"]
        waste.append(row["waste"])
    assert waste[0] < 0.9 * waste[1]


def train_joint(files, output, steps, *more):
    sets = ("env.like=[]", "learn.population=4", "learn.sequences=2", "learn.threads=1", *more)
    inputs = ("-p", str(files / "servers.xml"), "-w", str(files / "days.json"), "--days", ":3", "--steps", str(steps))
    arguments = [argument for change in sets for argument in ("--set", change)]
    resumed = ["--resume"] if output.exists() else []
    done = CliRunner().invoke(app, ["train", "joint", *inputs, "-o", str(output), *arguments, *resumed])
    assert done.exit_code == 0, done.output
    return read_checkpoint(output / "joint.ckpt")


def test_joint_learns_by_days_and_goes_on_where_it_stopped(files, tmp_path):
    train_joint(files, tmp_path / "twice", 480)
    manifest, twice = train_joint(files, tmp_path / "twice", 960)
    assert (manifest.steps, manifest.config.env.days) == (960, (0, 3))
    assert twice == train_joint(files, tmp_path / "once", 960)[1]
    assert seen_jobs(str(tmp_path / "once" / "joint.ckpt"), on_days(DAYS, slice(3, None))) == 0


def test_the_papers_preset_is_as_published():
    paper = load_config("deepscheduling-paper")
    assert (paper.network.kind, paper.network.hidden) == ("gru", (64, 128))
    learn = paper.learn
    assert (learn.envs, learn.rollout, learn.epochs, learn.minibatch, learn.steps) == (16, 360, 6, 180, 25_000_000)
    assert (learn.discount, learn.gae_lambda, learn.clip) == (0.97, 0.95, 0.2)
    assert (learn.value_clip, learn.entropy, learn.max_gradient) == (0.2, 0.005, 1e9)
    assert (paper.env.idle_weight, paper.env.queue_weight, paper.env.computing_weight) == (1, 1, 0.2)
    assert (paper.env.reward, paper.env.timeout, paper.env.masked, paper.env.days) == ("shares", 300, False, ())
    assert [learn.rate_at(done) for done in (0, 0.5, 1)] == pytest.approx([5e-4, (5e-4 * 1e-6) ** 0.5, 1e-6])
    assert find_scheduler("deepscheduling").default_preset == "deepscheduling-compact"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("dbf", "--days", ":2"), "--days: dbf does not learn by days; leave the option out"),
        (("deepscheduling", "--days", "4:"), "no day is left of 4:; it has 4 days with two submissions or more"),
        (("deepscheduling", "--set", "env.idle_weight=-1"), "env.idle_weight: expected `float` >= 0"),
    ],
)
def test_what_cannot_be_learned_is_refused_in_one_line(arguments, said, files, tmp_path):
    inputs = ("-p", str(files / "servers.xml"), "-w", str(files / "days.json"), "-o", str(tmp_path))
    done = CliRunner().invoke(app, ["train", *arguments, *inputs])
    assert (done.exit_code, said in done.stderr) == (2, True), done.output
