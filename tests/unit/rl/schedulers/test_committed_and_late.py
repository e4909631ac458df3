"""A job that a scheduler waits for may become too late for its deadline, and leave."""

import pytest

from decision.model.record import FinalState
from decision.model.workload import Delay, Job, Workload, Worth
from decision.policies.wrappers.supply import supplied
from decision.rl.envs import equal_hosts, make_setup
from decision.rl.schedulers import ChoosingPolicy
from decision.simulation import simulate_workloads


@pytest.mark.parametrize("encoder", [{"encoder": "rlscheduler", "head": 4}, {"encoder": "inspector", "base": "sjf"}])
def test_others_start_after_it(encoder):
    jobs = [
        Job(id="w0!a", submit_time=0.0, size=1, walltime=100.0, profile="d100"),
        Job(id="w0!b", submit_time=1.0, size=2, walltime=50.0, profile="d50", worth=Worth(deadline=60.0)),
        Job(id="w0!c", submit_time=20.0, size=2, walltime=50.0, profile="d50"),
        Job(id="w0!d", submit_time=20.0, size=1, walltime=50.0, profile="d50"),
    ]
    work = Workload(name="w0", jobs=jobs, profiles={"d100": Delay(99.0), "d50": Delay(49.0)}, nb_res=2)
    hosts = equal_hosts(2)
    policy = ChoosingPolicy(make_setup(work, hosts, jobs=None, **encoder).encoder, lambda _, mask: int(mask.argmax()))
    record = simulate_workloads(hosts, [work], supplied(policy))
    final = dict(zip(record.jobs.id, record.jobs.final_state.tolist(), strict=True))
    assert final.pop("w0!b") == FinalState.REJECTED
    assert set(final.values()) == {FinalState.COMPLETED_SUCCESSFULLY}
