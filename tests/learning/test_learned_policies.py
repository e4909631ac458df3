"""Learned policies: what they learn, where they run, and what they refuse."""

import csv
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch
from helpers import green_worlds
from helpers.learning_runs import FILES, workload

from decision.batsim.agent import Agent
from decision.engine.batsim4 import EmbeddedEngine
from decision.experiments.run import simulate_by_messages
from decision.files.generate.platforms import full_tree, networked
from decision.files.text import file_facts
from decision.model.errors import ConfigError, InputError
from decision.model.platform import Link, PowerState
from decision.model.workload import Workload
from decision.policies import find_policy, list_policies
from decision.rl.envs import DbfVectorEnv, equal_hosts, evaluate, make_setup
from decision.rl.learning import SHIPPED_MODELS
from decision.rl.learning.checkpoint import read_checkpoint, write_checkpoint
from decision.rl.learning.config import PpoConfig, load_config
from decision.rl.learning.schedulers import EpisodeComparison, TrainingInputs, train_scheduler
from decision.rl.schedulers import Episodes
from decision.simulation import simulate_workloads

SHORT = ("env.jobs=40", "learn.envs=8", "learn.rollout=64", "learn.minibatch=128", "learn.threads=1")
SPLIT = ("env.head=4", "env.tail=2", "env.cluster=cores")
KINDS = {  # presets and changes
    "cores": ("dbf-compact", *SPLIT),
    "pools": ("dbf-compact", *SPLIT, "env.cluster=pools"),
    "mlp": ("dbf-compact", *SPLIT, "network.kind=mlp"),
    "rlscheduler": ("rlscheduler", "env.head=6"),
    "inspector of sjf": ("inspector",),
    "inspector of f1": ("inspector", "env.base=f1"),
}


def learn(jobs: Workload, folder: Path, *changes: str, kind: str = "cores") -> Path:
    """A checkpoint."""
    preset, *first = KINDS[kind]
    config = load_config(preset, [*SHORT, "learn.steps=1024", *first, *changes])
    return train_scheduler(TrainingInputs(equal_hosts(jobs.nb_res), jobs, FILES), config, folder)


@pytest.fixture(scope="module")
def mixed() -> Workload:
    return workload(120, [1, 1, 2, 4, 8], seed=1, load=1.1)


@pytest.fixture(scope="module", params=KINDS)
def checkpoint(request, mixed, tmp_path_factory) -> Path:
    return learn(mixed, tmp_path_factory.mktemp("learned"), kind=request.param)


def test_the_same_checkpoint_makes_the_same_schedule_everywhere(checkpoint, mixed):
    platform, policy = equal_hosts(8), str(checkpoint)
    simulated = simulate_workloads(platform, [mixed], policy).jobs
    told = simulate_by_messages(EmbeddedEngine(platform, [mixed], ()), Agent(policy, {})).jobs
    assert (told.id, told.allocation) == (simulated.id, simulated.allocation)
    assert np.array_equal(told.start_time, simulated.start_time)
    starts = dict(zip(simulated.id, simulated.start_time.tolist(), strict=True))
    played = in_environment(checkpoint, mixed)
    assert len(played) > 110
    assert played == {job: starts[job] for job in played}


def in_environment(checkpoint: Path, jobs: Workload) -> dict[str, float]:
    """When jobs start in the environment of a checkpoint; what its last step starts is not told."""
    policy = find_policy(str(checkpoint))
    setup = make_setup(jobs, equal_hosts(8), encoder=policy.encoder, jobs=None, online=False)
    envs = DbfVectorEnv(1, setup=setup)
    observation, info = envs.reset(options={"first": 0})
    state, starts, over = envs.state_of(0), {}, False
    while not over:
        begun = np.flatnonzero(state.alloc_first[: state.nb_jobs] >= 0)
        starts |= {setup.trace.ids[job]: float(state.start_time[job]) for job in begun}
        action = policy.choose(observation[0], info["action_mask"][0])
        observation, _, terminated, truncated, info = envs.step(np.array([action]))
        over = bool(terminated | truncated)
    return starts


@pytest.mark.nightly
def test_where_the_shortest_job_first_is_best_that_is_what_is_learned(tmp_path):
    jobs = workload(400, [4], seed=3, load=0.9)  # one at a time: the shortest first has the least mean waiting time
    weights = ("env.idle_weight=0", "env.queue_weight=0.5", "env.waiting_weight=0.5", "env.tail=0", "env.head=8")
    learned = learn(jobs, tmp_path, "learn.steps=60000", "learn.lr=3e-3", "learn.minibatch=256", *weights)
    compared = EpisodeComparison(equal_hosts(4), jobs, 200, 10, 0)
    # nearly: jobs that an episode cuts off count, too
    wait = {policy: compared.metrics(policy)["waiting_time"].mean() for policy in (str(learned), "sjf", "fcfs")}
    assert wait["sjf"] < 1.01 * wait[str(learned)]
    assert wait[str(learned)] < 1.05 * wait["sjf"] < 0.7 * wait["fcfs"]


@pytest.mark.nightly
def test_priorities_are_learned_that_are_as_good_as_those_of_the_shortest_first(tmp_path):
    jobs = workload(400, [4], seed=3, load=0.9)
    fast = ("learn.steps=40000", "learn.rollout=128", "learn.minibatch=512", "learn.lr=1e-2", "learn.target_kl=0")
    learned = learn(jobs, tmp_path, *fast, "env.head=40", kind="rlscheduler")
    compared = EpisodeComparison(equal_hosts(4), jobs, 40, 100, 0, online=False)
    slowdown = {policy: compared.metrics(policy)["bounded_slowdown"].mean() for policy in (str(learned), "fcfs")}
    options = {"encoder": "inspector", "base": "sjf", "jobs": 40, "online": False}  # it commits itself to a job, too
    shortest = evaluate(accept, make_setup(jobs, equal_hosts(4), **options), 100, 0)["bounded_slowdown"].mean()
    assert slowdown[str(learned)] < 1.05 * shortest < 0.6 * slowdown["fcfs"]


def accept(observations: np.ndarray, masks: np.ndarray) -> np.ndarray:
    """Of SchedInspector: nothing is refused."""
    return np.zeros(len(observations), np.int64)


def test_each_curve_has_a_validation_from_its_first_row_on(checkpoint, mixed):
    rows = list(csv.DictReader((checkpoint.parent / "progress.csv").open()))
    assert [(rows[0]["steps"], rows[0]["reward"]), rows[-1]["steps"]] == [("0", ""), "1024"]
    validated = [row for row in rows if row["validation_waiting_time"]]
    assert validated == [rows[0], rows[-1]], "every 250,000 steps, and at the end"
    policy = find_policy(str(checkpoint))
    setup = make_setup(mixed, equal_hosts(8), encoder=policy.encoder, episodes=Episodes(jobs=120, online=False))
    whole = evaluate(policy.actor.together, setup, first=[0])
    for name in ("waiting_time", "bounded_slowdown"):
        assert float(rows[-1][f"validation_{name}"]) == whole[name][0], "a run of all 120 jobs, as they are"


def test_a_training_that_was_stopped_leaves_the_files_of_one_that_was_not(mixed, tmp_path, monkeypatch):
    monkeypatch.setattr(PpoConfig, "validated_every", 700)  # which is not after each iteration
    config = load_config("dbf-compact", [*SHORT, *SPLIT, "learn.steps=2560"])
    train = partial(train_scheduler, TrainingInputs(equal_hosts(8), mixed, FILES), config)
    train(tmp_path / "whole")
    stops = iter([True, False, True])
    for _ in range(3):
        train(tmp_path / "parts", resume=True, stop=lambda: next(stops, False))
    for name in ("progress.csv", "dbf.ckpt"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
    rows = list(csv.DictReader((tmp_path / "parts" / "progress.csv").open()))
    known = [int(row["steps"]) for row in rows if row["validation_waiting_time"]]
    assert known == [0, 1024, 1536, 2560]


@pytest.mark.parametrize("kind", ["cores", "rlscheduler", "inspector of sjf"])
def test_training_again_gives_the_same_file(kind, mixed, tmp_path):
    first, again = (learn(mixed, tmp_path / name, kind=kind).read_bytes() for name in "ab")
    assert first == again


def test_all_kinds_are_compared_over_the_same_episodes_whose_jobs_are_no_more_offline(checkpoint, mixed):
    for online in (True, False):
        compared = EpisodeComparison(equal_hosts(8), mixed, 40, 5, 0, online)
        arrived = [compared.metrics(policy)["arrived"] for policy in (str(checkpoint), "fcfs")]
        assert all((jobs > 40).any() if online else (jobs == 40).all() for jobs in arrived)


def test_training_does_not_depend_on_what_torch_was_told_before(mixed, tmp_path):
    threads = torch.get_num_threads()
    try:
        files = []
        for before in (1, 2):
            torch.set_num_threads(before)
            files.append(learn(mixed, tmp_path / str(before)).read_bytes())
            assert torch.get_num_threads() == before
    finally:
        torch.set_num_threads(threads)
    assert files[0] == files[1]


def test_another_size_of_platform_is_refused_naming_both_where_cores_are_seen(mixed, tmp_path):
    other = equal_hosts(16)
    with pytest.raises(ConfigError, match="has 16 hosts, but the policy's observations are of 8"):
        simulate_workloads(other, [mixed], str(learn(mixed, tmp_path / "cores")))
    for kind in ("pools", "rlscheduler", "inspector of sjf"):
        learned = learn(mixed, tmp_path / kind, kind=kind)
        assert len(simulate_workloads(other, [mixed], str(learned)).jobs.id) == len(mixed.jobs)


def test_another_version_of_the_encoder_is_refused_naming_both(mixed, tmp_path):
    path = learn(mixed, tmp_path)
    manifest, weights = read_checkpoint(path)
    newer = msgspec.structs.replace(manifest, encoder=manifest.encoder | {"version": 7})
    write_checkpoint(tmp_path / "newer.ckpt", newer, weights)
    with pytest.raises(ConfigError, match=r"version 7 .* version 1 and 2"):
        find_policy(str(tmp_path / "newer.ckpt"))


def test_weights_of_another_network_are_refused(mixed, tmp_path):
    manifest, weights = read_checkpoint(learn(mixed, tmp_path))
    wider = msgspec.structs.replace(manifest.config.network, hidden=(33,))
    config = msgspec.structs.replace(manifest.config, network=wider)
    write_checkpoint(tmp_path / "wider.ckpt", msgspec.structs.replace(manifest, config=config), weights)
    with pytest.raises(InputError, match="size mismatch"):
        find_policy(str(tmp_path / "wider.ckpt"))
    write_checkpoint(tmp_path / "none.ckpt", manifest, b"not torch's")
    with pytest.raises(InputError, match="the file is damaged"):
        find_policy(str(tmp_path / "none.ckpt"))


def test_a_learned_policy_has_no_options(checkpoint):
    with pytest.raises(ConfigError, match=r"has no option 'greedy'.*it has none"):
        find_policy(f"{checkpoint},greedy=no")


def test_facts_of_inputs_are_in_the_checkpoint(checkpoint, mixed):
    manifest, _ = read_checkpoint(checkpoint)
    assert (manifest.platform, *manifest.workloads) == tuple(FILES)
    assert (manifest.nb_hosts, manifest.steps, manifest.algorithm) == (8, 1024, "ppo")
    assert file_facts(checkpoint).name == f"{manifest.config.scheduler}.ckpt"


FOR_256_HOSTS = ["dbf-0-10"]
FOR_TREES = ["repair"]
FOR_POWER = ["timetable"]
FOR_SERVERS = ["joint"]  # that sleep: tests/learning/test_deepscheduling.py holds its schedules


@pytest.mark.parametrize("name", sorted({*SHIPPED_MODELS} - {*FOR_TREES, *FOR_POWER, *FOR_SERVERS}))
def test_a_shipped_policy_runs_under_its_name_on_any_platform_or_says_which(name, mixed):
    if name in FOR_256_HOSTS:
        with pytest.raises(ConfigError, match=r"256 hosts"):
            simulate_workloads(equal_hosts(100), [mixed], name)
    for hosts in (256,) if name in FOR_256_HOSTS else (8, 100):
        platform = equal_hosts(hosts)
        simulated = simulate_workloads(platform, [mixed], name).jobs
        told = simulate_by_messages(EmbeddedEngine(platform, [mixed], ()), Agent(name, {})).jobs
        assert len(simulated.id) == len(mixed.jobs)
        assert (told.id, told.allocation) == (simulated.id, simulated.allocation)
    assert EpisodeComparison(platform, mixed, 50, 2, 0).metrics(name)["waiting_time"].shape == (2,)


@pytest.mark.parametrize("policy", ["repair", "window,solver=nsa,steps=20,repair=repair"])
def test_what_is_shipped_for_trees_runs_on_any_of_three_levels_or_says_so(policy, mixed):
    name, *options = policy.split(",")
    with pytest.raises(ConfigError, match=r"fat-tree|tree of switches"):
        simulate_workloads(equal_hosts(8), [mixed], policy)
    for down in ((4, 2, 3), (10, 10, 10)):
        platform = networked(full_tree(down, [Link(1e9, 0.0)] * 3), (PowerState(1e9),))
        simulated = simulate_workloads(platform, [mixed], policy).jobs
        agent = Agent(name, dict(option.split("=") for option in options), platform=platform)
        told = simulate_by_messages(EmbeddedEngine(platform, [mixed], ()), agent).jobs
        assert len(simulated.id) == len(mixed.jobs)
        assert (told.id, told.allocation) == (simulated.id, simulated.allocation)


@pytest.mark.parametrize("name", FOR_POWER)
def test_what_is_shipped_for_power_is_the_same_by_messages_and_needs_values(name, mixed):
    with pytest.raises(ConfigError, match="has no 'value'"):
        simulate_workloads(equal_hosts(8), [mixed], name)
    for seed in range(3):
        hosts, jobs, events = equal_hosts(green_worlds.HOSTS), green_worlds.workload(seed), green_worlds.supply(seed)
        simulated = simulate_workloads(hosts, [jobs], name, events=events).jobs
        engine = EmbeddedEngine(hosts, [jobs], events, green_worlds.BY_MESSAGES)
        told = simulate_by_messages(engine, Agent(name, {}, platform=hosts)).jobs
        assert (told.id, told.allocation) == (simulated.id, simulated.allocation)
        assert np.allclose(told.start_time, simulated.start_time, equal_nan=True)


@pytest.mark.parametrize("name", FOR_SERVERS)
def test_what_is_shipped_for_servers_that_sleep_needs_such(name, mixed):
    with pytest.raises(ConfigError, match="no host has sleep states"):
        simulate_workloads(equal_hosts(8), [mixed], name)


def test_the_shipped_policies_are_those_of_the_catalogue():
    free = {"dbf", "learned", "packer", "ranking", "rlscheduler"}
    assert set(SHIPPED_MODELS) == {*free, *FOR_256_HOSTS, *FOR_TREES, *FOR_POWER, *FOR_SERVERS}
    assert {*SHIPPED_MODELS, "FILE.ckpt"} <= {line.name for line in list_policies()}


def test_the_seed_of_a_run_is_that_of_the_policys_draws(mixed, tmp_path):
    policy = str(learn(mixed, tmp_path))
    starts = [
        simulate_workloads(equal_hosts(8), [mixed], policy, seed=seed).jobs.start_time.tolist() for seed in (1, 1, 2)
    ]
    assert starts[0] == starts[1] != starts[2]
