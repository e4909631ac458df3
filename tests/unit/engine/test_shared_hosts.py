"""Several jobs on one host: what a policy may plan, what tasks get, what is charged and measured.

Sessions of a real Batsim hold the same in `tests/golden/sessions/shared_hosts` and `shared_network`.
"""

import numpy as np
import pytest

from decision.engine.rules import EngineOptions
from decision.experiments.energy import split_energy, waste_bound
from decision.model.errors import PolicyError
from decision.model.platform import Host, Platform, PowerState, SleepState
from decision.model.workload import Delay, Job, ParallelHomogeneous, Workload
from decision.simulation import simulate_workloads

SHARED = EngineOptions(energy=True, compute_sharing=True)
STATES = (PowerState(1e9, 100.0, 110.0, 155.0), PowerState(1e9, 5.0, 5.0, 5.0), PowerState(1.0), PowerState(1.0))


class Placed:
    """Starts each job on the hosts that it was told, as soon as it comes."""

    def __init__(self, *hosts):
        self.hosts = hosts

    def reset(self, platform, seed):
        """Nothing to forget."""

    def decide(self, cluster, plan):
        for job in cluster.queue:
            plan.start(job, self.hosts[job.number])


def platform(cores=2, count=2):
    sleep = (SleepState(1, 2, 3),)
    hosts = (Host(id=i, name=f"h{i}", pstates=STATES, sleep=sleep, cores=cores, has_power=True) for i in range(count))
    return Platform(hosts=tuple(hosts))


def run(jobs, *hosts, options=SHARED, **described):
    """A run of jobs (submission, profile), 10 s on one core each, or a delay of 10 s."""
    profiles = {"task": ParallelHomogeneous(10e9, 0.0), "wait": Delay(10.0)}
    listed = (
        Job(id=f"w0!{i}", submit_time=time, size=len(hosts[i]), walltime=np.inf, profile=name)
        for i, (time, name) in enumerate(jobs)
    )
    work = Workload(name="w0", jobs=tuple(listed), profiles=profiles, nb_res=2)
    return simulate_workloads(platform(**described), [work], Placed(*hosts), engine_options=options)


def ends(record):
    return dict(zip(record.jobs.id, (record.jobs.start_time + record.jobs.runtime).round(9).tolist(), strict=True))


def test_tasks_have_a_core_each_while_there_are_cores():
    assert ends(run([(0.0, "task"), (0.0, "task")], [0], [0])) == {"w0!0": 10.0, "w0!1": 10.0}


def test_more_tasks_than_cores_share_them_evenly():
    # Alone for 5 s, then both at half the speed until the first has its 10e9 flop.
    assert ends(run([(0.0, "task"), (5.0, "task")], [0], [0], cores=1)) == {"w0!0": 15.0, "w0!1": 20.0}


def test_a_task_on_several_hosts_is_as_fast_as_its_slowest_executor():
    record = run([(0.0, "task"), (0.0, "task")], [0, 1], [1], cores=1)
    assert ends(record) == {"w0!0": 20.0, "w0!1": 20.0}


def test_delays_share_nothing():
    assert ends(run([(0.0, "wait"), (0.0, "task")], [0], [0], cores=1)) == {"w0!0": 10.0, "w0!1": 10.0}


def test_a_host_draws_what_all_cores_in_use_draw():
    record = run([(0.0, "task"), (5.0, "task")], [0], [0], count=1)
    # One core for 5 s, both for 5 s, one for 5 s; each job is charged for all of it while it ran.
    assert record.joules == pytest.approx(5 * 155 + 5 * 200 + 5 * 155)
    assert record.jobs.energy.tolist() == pytest.approx([5 * 155 + 5 * 200, 5 * 200 + 5 * 155])


def test_energy_is_split_by_what_hosts_do_and_not_by_jobs():
    record = run([(0.0, "task"), (5.0, "task"), (20.0, "task")], [0], [0], [0])
    split = split_energy(record, platform())
    assert split.idle == pytest.approx(5 * 100 + 30 * 100)  # host 0 between the second and the third, and host 1
    assert split.computing == pytest.approx(record.joules - split.idle)
    assert waste_bound(record, platform()) <= split.waste


def test_a_host_is_idle_when_its_last_job_has_ended():
    record = run([(0.0, "task"), (5.0, "task")], [0], [0], count=1)
    idle, computing = record.host_states.counts[:, 3].tolist(), record.host_states.counts[:, 4].tolist()
    assert list(zip(record.host_states.time.tolist(), idle, computing, strict=True)) == [
        (0.0, 0, 1),
        (5.0, 0, 1),
        (10.0, 0, 1),
        (15.0, 1, 0),
    ]


def test_a_host_that_computes_is_refused_where_hosts_are_not_shared():
    with pytest.raises(PolicyError, match="t=5 s: w0!1 cannot start on hosts 0: host 0 computes w0!0"):
        run([(0.0, "task"), (5.0, "task")], [0], [0], options=EngineOptions(energy=True))


def test_a_policy_may_start_two_jobs_on_one_host_in_one_plan_only_where_hosts_are_shared():
    with pytest.raises(PolicyError, match="host 0 is taken by an earlier action of the plan"):
        run([(0.0, "task"), (0.0, "task")], [0], [0], options=EngineOptions(energy=True))
