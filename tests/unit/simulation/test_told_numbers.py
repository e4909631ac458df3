"""Batsim's messages have six decimals: a decision process hears that of a workload's numbers, on every engine."""

import pytest

from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.reference.engine import ReferenceEngine
from decision.engine.rules import EngineOptions
from decision.files.generate.platforms import simple_cluster
from decision.model.workload import Delay, Job, Workload, Worth
from decision.protocol import messages as m
from decision.simulation import simulate_workloads

LONG, SAID = 26.337999999999997, 26.338
LATE, SAID_LATE = 1026.3379999999997, 1026.338
JOB = Job(id="w0!a", submit_time=LONG, size=1, walltime=LONG, profile="d", estimate=LONG, worth=Worth(LONG, LONG, LATE))
WORK = Workload(name="w0", jobs=[JOB], profiles={"d": Delay(LONG / 3)}, nb_res=1)


class Listens:
    """Writes down what it hears of jobs, and starts them."""

    def reset(self, platform, seed):
        self.heard = []

    def decide(self, cluster, plan):
        state = cluster.arrays
        for job in cluster.queue:
            columns = (state.submit_time, state.walltime, state.estimate, state.value, state.qos, state.deadline)
            self.heard.append([float(column[job.number]) for column in columns])
            plan.start(job)


def test_in_the_loop():
    policy = Listens()
    record = simulate_workloads(simple_cluster(1), [WORK], policy)
    assert policy.heard == [[SAID] * 5 + [SAID_LATE]]
    assert record.jobs.runtime.tolist() == [pytest.approx(LONG / 3, abs=1e-12)], "what a job does is not rounded"


@pytest.mark.parametrize("engine", [EmbeddedEngine, ReferenceEngine])
def test_in_messages(engine):
    simulator = engine(simple_cluster(1), [WORK], (), EngineOptions(forward_profiles=True))
    begins = simulator.ask()
    assert begins.events[0].data.profiles["w0"]["d"]["delay"] == 8.779333
    simulator.answer(m.Message(0.0, ()))
    event = simulator.ask().events[0]
    job = event.data.job
    assert (event.timestamp, job.subtime, job.walltime, job.fields["estimate"]) == (SAID,) * 4
    assert job.fields["deadline"] == SAID_LATE
    assert event.data.profile["delay"] == 8.779333
