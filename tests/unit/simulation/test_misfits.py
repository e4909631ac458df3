"""Jobs that ask for more hosts than there are: rejected when they come, and the same with and without messages."""

import logging
from math import inf

import pytest
from helpers.engine_compare import compare_records

from decision.batsim.agent import make_agent
from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.reference.engine import ReferenceEngine
from decision.engine.rules import EngineOptions
from decision.experiments.run import simulate_by_messages
from decision.files.generate.platforms import simple_cluster
from decision.model.errors import ConfigError, warn_once
from decision.model.record import FinalState, lost_work
from decision.model.workload import Delay, Job, Workload
from decision.simulation import simulate_workloads

HOSTS = 4


def workload() -> Workload:
    """Jobs of 1 to 6 hosts, several at one instant; every profile ends at whole seconds, so that there are ties."""
    jobs = tuple(
        Job(id=f"w0!{i:02}", submit_time=float(3 * (i // 4)), size=1 + (i * i) % 6, walltime=20.0, profile=f"p{i % 3}")
        for i in range(40)
    )
    return Workload(name="w0", jobs=jobs, profiles={f"p{k}": Delay(1.0 + 2 * k) for k in range(3)}, nb_res=HOSTS)


class Greedy:
    """Starts what fits; in Python."""

    def reset(self, platform, seed):
        pass

    def decide(self, cluster, plan):
        for job in cluster.queue:
            assert job.size <= cluster.nb_hosts, "a policy sees no job that it cannot start"
            if job.size <= plan.nb_free:
                plan.start(job)


@pytest.fixture(autouse=True)
def nothing_said():
    warn_once.cache_clear()


def rejected(record) -> set[str]:
    return {
        job for job, state in zip(record.jobs.id, record.jobs.final_state, strict=True) if state == FinalState.REJECTED
    }


@pytest.mark.parametrize(
    "policy", ["fcfs", "easy", "conservative", "sjf+easy", "kamelot", "easy,power=idle-timeout,idle_timeout=5"]
)
def test_both_ways_of_deciding_reject_them_and_agree_on_the_rest(policy, caplog):
    platform, work = simple_cluster(HOSTS), workload()
    energy = EngineOptions(energy="power" in policy)
    wanted = {job.id for job in work.jobs if job.size > HOSTS}
    agent = make_agent(policy, {}, platform=platform)
    told = simulate_by_messages(ReferenceEngine(platform, [work], (), energy), agent)
    compiled = simulate_workloads(platform, [work], policy, engine_options=energy)
    assert rejected(told) == rejected(compiled) == wanted
    compiled.scheduling_time = compiled.simulation_time = told.simulation_time
    told.lost_work = lost_work(told.jobs, [work])  # which takes the workload
    assert compare_records(told, compiled) == []
    line = f"rejected {len(wanted)} jobs that do not fit the platform of 4 hosts, the first is w0!02 with 5"
    advice = "hosts sleep where the platform has sleep states and energy is simulated (-E)"
    sleepless = [f"policy easy puts hosts to sleep, and none can: {advice}"] if energy.energy else []
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING] == [line, *sleepless]


def test_a_policy_in_python_does_not_see_them():
    record = simulate_workloads(simple_cluster(HOSTS), [workload()], Greedy())
    assert rejected(record) == {job.id for job in workload().jobs if job.size > HOSTS}
    assert len(record.jobs.id) == 40


def test_a_workload_of_nothing_else_ends(caplog):
    job = Job(id="w0!big", submit_time=5.0, size=9, walltime=1.0, profile="p")
    work = Workload(name="w0", jobs=(job,), profiles={"p": Delay(1.0)}, nb_res=9)
    record = simulate_workloads(simple_cluster(HOSTS), [work], "easy")
    assert rejected(record) == {"w0!big"}
    assert caplog.messages == ["rejected 1 job that does not fit the platform of 4 hosts, the first is w0!big with 9"]


@pytest.mark.parametrize(("times", "job"), [((0.0, 1e308), 1.0), ((0.0, 0.0), 1e308)])
@pytest.mark.parametrize("engine", [EmbeddedEngine, ReferenceEngine])
def test_a_time_that_no_clock_can_count_to_ends_the_simulation(times, job, engine):
    jobs = tuple(Job(id=f"w0!{i}", submit_time=at, size=4, walltime=inf, profile="p") for i, at in enumerate(times))
    late = Workload(name="w0", jobs=jobs, profiles={"p": Delay(job)}, nb_res=HOSTS)
    simulator = engine(simple_cluster(HOSTS), [late], [], EngineOptions())
    with pytest.raises(ConfigError, match=r"a simulation ends at 1e\+15 s: .* give times in seconds"):
        simulate_by_messages(simulator, make_agent("fcfs", {}))
