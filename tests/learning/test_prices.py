"""Prices of free hosts: learned alike by the same seed, and used alike wherever a policy runs."""

import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest
from helpers.env_toys import workload
from helpers.learning_runs import FILES

from decision.batsim.agent import Agent
from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.reference.engine import ReferenceEngine
from decision.experiments.run import simulate_by_messages
from decision.files.generate.jobs import Tasks, as_tasks
from decision.files.generate.platforms import full_tree, networked
from decision.model.errors import ConfigError, InputError
from decision.model.hosts import parse_hosts
from decision.model.platform import Link, Platform, PowerState
from decision.policies import find_policy
from decision.policies.composed import ComposedPolicy
from decision.policies.placement.windows import N_FEATURES
from decision.rl.envs import make_setup
from decision.rl.envs.batch import Batch, play_episode
from decision.rl.learning import read_prices
from decision.rl.learning.checkpoint import read_checkpoint, read_manifest, read_numbers, write_checkpoint
from decision.rl.learning.config import load_config
from decision.rl.learning.schedulers import TrainingInputs, train_scheduler
from decision.rl.learning.weights import dump_numbers
from decision.simulation import simulate_workloads

SHORT = ("env.jobs=30", "learn.population=4", "learn.sequences=2", "learn.threads=1")
STEPS = 30 * 4 * 2  # of a generation


def tree(*down: int, bandwidth: float = 1e9) -> Platform:
    return networked(full_tree(down, [Link(bandwidth, 0.0)] * len(down)), (PowerState(1e9),))


PLATFORM = tree(4, 4, 4)


def jobs(seed: int = 0, walltimes: bool = True):
    rng = np.random.default_rng(seed)
    rows = zip(np.sort(rng.integers(0, 900, 80)), rng.integers(1, 17, 80), rng.integers(30, 200, 80), strict=True)
    made = workload(64, *((float(submit), int(size), float(run), float(run)) for submit, size, run in rows))
    if walltimes:
        return made
    return msgspec.structs.replace(
        made, jobs=tuple(msgspec.structs.replace(job, walltime=float("inf")) for job in made.jobs)
    )


def learn(
    folder: Path, *changes: str, steps: int = 3 * STEPS, platform: Platform = PLATFORM, made=None, **more
) -> Path:
    config = load_config("prices", [*SHORT, f"learn.steps={steps}", *changes])
    return train_scheduler(TrainingInputs(platform, made or jobs(), FILES), config, folder, **more)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Path:
    return learn(tmp_path_factory.mktemp("prices"))


@pytest.fixture(scope="module")
def dear(checkpoint, tmp_path_factory) -> Path:
    """With prices that are high, so that they decide."""
    path = tmp_path_factory.mktemp("dear") / "dear.ckpt"
    weights = np.random.default_rng(1).normal(0, 3, (2, N_FEATURES))
    write_checkpoint(path, read_manifest(checkpoint), dump_numbers(weights))
    return path


TREE, ONE_BY_ONE = {"allocation": "tree"}, {"solver": "sequential", "strategy": "free", "period": "20"}


@pytest.mark.parametrize(
    ("policy", "options", "walltimes"),
    [("fcfs", TREE, False), ("sjf+easy", TREE, True), ("window", ONE_BY_ONE, True), ("window", ONE_BY_ONE, False)],
)
def test_prices_choose_the_same_hosts_in_both_engines_and_behind_messages(dear, policy, options, walltimes):
    given = jobs(1, walltimes)
    without = simulate_workloads(PLATFORM, [given], policy, options).jobs
    options = {**options, "prices": str(dear)}
    simulated = simulate_workloads(PLATFORM, [given], policy, options).jobs
    assert simulated.allocation != without.allocation
    assert len(simulated.id) == 80
    for engine in (EmbeddedEngine, ReferenceEngine):
        agent = Agent(policy, options, platform=PLATFORM)
        told = simulate_by_messages(engine(PLATFORM, [given], ()), agent).jobs
        for column in ("id", "allocation"):
            assert list(getattr(told, column)) == list(getattr(simulated, column))
        assert told.start_time.tolist() == simulated.start_time.tolist()


def test_prices_choose_the_same_hosts_in_an_environment(dear):
    policy = find_policy(f"easy,allocation=tree,prices={dear}")
    simulated = simulate_workloads(PLATFORM, [jobs(1)], policy).jobs
    setup = make_setup(jobs(1), PLATFORM, jobs=None, online=False)
    batch = Batch(setup, 1, 1)
    state = batch.envs[0].state
    policy.reset(PLATFORM, 0)
    memory, out = policy.memory_for(state), np.zeros(len(batch.metric_names))
    assert play_episode(batch, 0, policy.entry.address, memory.address, 0, out)
    compared = 0
    hosts = dict(zip(simulated.id, map(parse_hosts, simulated.allocation), strict=True))
    for job in range(80):
        at, count = int(state.alloc_first[job]), int(state.alloc_count[job])
        if at >= 0 and count:  # what the last plan starts is carried out no more
            compared += 1
            spans = zip(state.interval_first[at : at + count], state.interval_last[at : at + count], strict=True)
            assert [host for first, last in spans for host in range(first, last + 1)] == hosts[setup.trace.ids[job]]
    assert compared > 70


@pytest.mark.parametrize("policy", ["fcfs", "easy"])
def test_free_hosts_that_are_worth_nothing_change_nothing(policy):
    free = ComposedPolicy(
        *(("fcfs", policy) if policy == "easy" else (policy,)), allocation="tree", prices=np.zeros((2, 8))
    )
    one, other = (simulate_workloads(PLATFORM, [jobs(2)], each).jobs for each in (free, f"{policy},allocation=tree"))
    assert one.allocation == other.allocation
    assert one.start_time.tolist() == other.start_time.tolist()


def test_the_same_seed_learns_the_same_also_after_a_stop(checkpoint, tmp_path):
    assert learn(tmp_path / "again").read_bytes() == checkpoint.read_bytes()
    stopped = learn(tmp_path / "stopped", stop=lambda: True)
    assert read_manifest(stopped).steps == STEPS
    assert learn(tmp_path / "stopped", resume=True).read_bytes() == checkpoint.read_bytes()
    two = learn(tmp_path / "threads", "learn.threads=2")
    assert np.array_equal(read_prices(str(two)), read_prices(str(checkpoint)))


def test_what_is_learned_costs_less_than_the_tree_alone(tmp_path):
    found = read_prices(str(learn(tmp_path, "env.jobs=80", "learn.population=8", steps=80 * 8 * 2 * 12)))
    policies = "fcfs,allocation=tree", ComposedPolicy(allocation="tree", prices=found)
    learned = load_config("prices", [*SHORT, "env.jobs=80"])
    from decision.rl.learning.prices_learner import Schedules

    schedules = Schedules(PLATFORM, jobs(), learned.env)
    before, after = (schedules.measure(find_policy(p) if isinstance(p, str) else p, 0)[0] for p in policies)
    assert after < before


def test_run_times_are_learned_from_where_jobs_communicate(tmp_path):
    narrow = tree(4, 4, 4, bandwidth=1e8)
    tasks = as_tasks(jobs(), Tasks(kind="parallel", speed=1e9, comm_ratio=1.0, bandwidth=1e8))
    roomy = tuple(msgspec.structs.replace(job, walltime=10 * job.walltime) for job in tasks.jobs)
    tasks = msgspec.structs.replace(tasks, jobs=roomy)
    path = learn(tmp_path, "env.metric=stretch", platform=narrow, made=tasks, steps=STEPS)
    assert read_manifest(path).scores["stretch"] > 1.0
    assert read_prices(str(path)).shape == (2, N_FEATURES)


def test_prices_are_read_without_torch(dear):
    code = f"import sys; from decision.policies import find_policy; find_policy('easy,allocation=tree,prices={dear}')"
    done = subprocess.run([sys.executable, "-c", f"{code}; sys.exit('torch' in sys.modules)"], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        ("easy,prices={}", "option prices does nothing without allocation=tree"),
        ("easy,allocation=slurm-tree,prices={}", "option prices does nothing without allocation=tree"),
        ("window,prices={}", "option prices is for solver=sequential with strategy=free"),
        ("easy,allocation=tree,prices=dbf", "it is a checkpoint of dbf; prices needs one of decision train prices"),
        ("easy,allocation=tree,prices=none", "prices=none is not a checkpoint"),
        ("{}", "it has prices and is not a policy: use easy,allocation=tree,prices="),
    ],
)
def test_what_has_no_prices_is_refused_in_one_line(dear, policy, why):
    with pytest.raises(ConfigError, match=why) as refused:
        find_policy(policy.format(dear))
    assert "\n" not in str(refused.value)


def test_prices_of_another_tree_are_refused(dear, tmp_path):
    for name in ("easy,allocation=tree", "window,solver=sequential,strategy=free"):
        with pytest.raises(ConfigError, match=r"prices=.*ckpt is for trees of 3 levels, and the platform has 2"):
            find_policy(f"{name},prices={dear}").reset(tree(4, 4), 0)
    with pytest.raises(ConfigError, match="needs a tree of switches"):
        learn(tmp_path / "flat", platform=tree(64))


@pytest.mark.parametrize("numbers", [np.zeros(7), np.full(16, np.nan), np.full(16, 101.0), np.zeros(0)])
def test_damaged_prices_are_refused(checkpoint, tmp_path, numbers):
    path = tmp_path / "bad.ckpt"
    write_checkpoint(path, read_manifest(checkpoint), dump_numbers(numbers))
    with pytest.raises(InputError, match=r"bad\.ckpt"):
        read_prices(str(path))


def test_other_bytes_and_other_versions_are_refused(checkpoint, tmp_path):
    manifest, data = read_checkpoint(checkpoint)
    assert np.isfinite(read_numbers("x", data)).all()
    path = tmp_path / "bad.ckpt"
    write_checkpoint(path, manifest, b"PK" + data[2:50])
    with pytest.raises(InputError, match=r"weights\.pt: cannot be read as numbers"):
        read_prices(str(path))
    write_checkpoint(path, msgspec.structs.replace(manifest, encoder={"name": "prices", "version": 2}), data)
    with pytest.raises(ConfigError, match="its prices are of version 2, ours of 1"):
        read_prices(str(path))


@pytest.mark.parametrize("change", ["env.policy=fastest", "env.metric=wait", "env.jobs=0"])
def test_settings_that_make_no_sense_are_refused(change):
    with pytest.raises(ConfigError, match=r"env\."):
        load_config("prices", [change])


@pytest.mark.parametrize("name", ["hops", "stretch"])
def test_the_shipped_prices_are_for_trees_of_three_levels(name):
    assert read_prices(name).shape == (2, N_FEATURES)
    find_policy(f"easy,allocation=tree,prices={name}").reset(PLATFORM, 0)
