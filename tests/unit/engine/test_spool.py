"""What a long run puts aside, and what it keeps for those who may ask."""

import tempfile

import numpy as np
import pytest
from helpers.policy_toys import platform

from decision.engine import compiled
from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.rules import EngineOptions
from decision.files import write_run
from decision.model.errors import ConfigError
from decision.model.workload import Delay, Job, MachineEvent, ParallelHomogeneous, Workload
from decision.policies.registry import find_policy
from decision.simulation import simulate_on
from decision.state import cluster

HOSTS = 40


@pytest.fixture(scope="module")
def workload():
    rng = np.random.default_rng(5)
    times = np.cumsum(rng.exponential(2.0, 4_000))
    profiles = {"d": Delay(9.0), "c": ParallelHomogeneous(20e9, 0.0), "long": Delay(900.0)}
    jobs = [
        Job(
            id=f"w0!{i}",
            submit_time=float(at),
            size=int(rng.integers(1, 12)),
            walltime=float(rng.choice([8.0, 30.0, 1000.0])),
            profile=str(rng.choice(["d", "c", "long"], p=[0.6, 0.39, 0.01])),
        )
        for i, at in enumerate(times)
    ]
    return Workload(name="w0", jobs=jobs, profiles=profiles, nb_res=HOSTS)


@pytest.fixture
def brief_memory(monkeypatch):
    """As if hardly any rows were many."""
    for module, name in ((compiled, "HOST_ROWS"), (compiled, "INTERVALS"), (cluster, "INTERVALS")):
        monkeypatch.setattr(module, name, 0)


def simulated(workload, policy, energy: bool) -> EmbeddedEngine:
    hosts = platform(HOSTS, sleeps=energy)
    events = [
        MachineEvent(timestamp=500.0, type="machine_unavailable", hosts=(3, 4)),
        MachineEvent(timestamp=900.0, type="machine_available", hosts=(3, 4)),
    ]
    engine = EmbeddedEngine(hosts, [workload], events, EngineOptions(energy=energy))
    policy.reset(hosts, 0)
    simulate_on(engine, policy)
    return engine


def files(engine: EmbeddedEngine, folder) -> dict[str, bytes]:
    folder.mkdir(exist_ok=True)
    return {path.name: path.read_bytes() for path in write_run(folder / "out", engine.record())}


@pytest.mark.parametrize(
    ("policy", "energy"), [("easy", False), ("conservative,allocation=random", True), ("kamelot", False)]
)
def test_a_run_that_puts_aside_writes_the_same_files(workload, tmp_path, request, policy, energy):
    def policy_():
        name, _, options = policy.partition(",")
        return find_policy(name, dict(pair.split("=") for pair in options.split(",") if pair))

    kept = simulated(workload, policy_(), energy)
    assert kept.state.nb_intervals == kept.state.alloc_count.sum()
    wanted = files(kept, tmp_path / "kept")
    request.getfixturevalue("brief_memory")
    aside = simulated(workload, policy_(), energy)
    assert aside.state.nb_intervals < kept.state.nb_intervals / 2
    assert len(aside.world.rows.host_time) < len(kept.world.rows.host_time) / 2
    for again in ("once", "twice"):
        assert files(aside, tmp_path / again) == wanted


class LooksBack:
    """First come, first served; and asks for the hosts of the first job at every decision."""

    def reset(self, platform, seed):
        self.seen = []

    def decide(self, cluster_, plan):
        if cluster_.now > 0:
            self.seen.append(cluster_.job(0).hosts)
        for job in cluster_.queue:
            if job.size > plan.nb_free:
                break
            plan.start(job)


def test_a_policy_in_python_may_ask_for_the_hosts_of_any_job_that_is_over(workload, brief_memory):
    policy = LooksBack()
    simulated(workload, policy, energy=False)
    assert {tuple(hosts) for hosts in policy.seen[1:]} == {tuple(policy.seen[-1])} != {()}


def test_a_full_disk_is_named_with_what_to_do(workload, brief_memory, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    with pytest.raises(ConfigError, match=r"temporary file of a long run cannot be written.*TMPDIR"):
        simulated(workload, find_policy("easy", {}), energy=False)
