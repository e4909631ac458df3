"""OAR's scheduler: known answers, worked out by hand, and the rules that every policy keeps."""

import math

import numpy as np
import pytest

from decision.files.generate.platforms import simple_cluster
from decision.model.errors import ConfigError
from decision.model.workload import Delay, Job, Workload
from decision.policies import find_policy
from decision.policies import kamelot as kernels
from decision.simulation import simulate_workloads, try_policy


def schedule(hosts: int, *jobs: tuple[float, int, float, float], **options: float) -> list[tuple[float, str]]:
    """Start (seconds) and hosts of each job, from (submission, hosts, walltime, runtime), times in seconds."""
    made = tuple(
        Job(id=f"w0!{i}", submit_time=submit, size=size, walltime=walltime, profile=str(i))
        for i, (submit, size, walltime, _) in enumerate(jobs)
    )
    profiles = {str(i): Delay(job[3]) for i, job in enumerate(jobs)}
    record = simulate_workloads(
        simple_cluster(hosts),
        [Workload(name="w0", jobs=made, profiles=profiles, nb_res=hosts)],
        "kamelot",
        {name: str(value) for name, value in options.items()},
    )
    rows = zip(record.jobs.id, record.jobs.start_time.tolist(), record.jobs.allocation, strict=True)
    return [(start, where) for _, start, where in sorted(rows)]


class Gantt:
    """The kernels' chart of up to 64 hosts, with sets of hosts as whole numbers."""

    def __init__(self, now: float, free: int) -> None:
        self.arrays = kernels.new_gantt(8, 1)
        kernels.begin_gantt(self.arrays, now, np.array([free], np.uint64))

    def release(self, time: float, hosts: int) -> None:
        kernels.release(self.arrays, time, np.array([hosts], np.uint64))

    def reserve(self, size: int, duration: float) -> tuple[float, int]:
        return kernels.reserve(self.arrays, size, duration), int(self.arrays.hosts[0])


def test_a_job_passes_only_if_it_delays_nobody():
    # the second job is reserved at 10 on all hosts; the third ends before, the fourth would not
    jobs = ((0.0, 2, 10.0, 10.0), (1.0, 4, 5.0, 5.0), (2.0, 1, 8.0, 8.0), (3.0, 1, 8.0, 8.0))
    assert schedule(4, *jobs, security_time=0) == [(0, "0-1"), (10, "0-3"), (2, "2"), (15, "0")]


def test_the_security_time_makes_each_walltime_longer():
    # one host is left until the third job's reservation, planned at 10 + 5 without security time and at 11 + 6 with 1 s
    jobs = ((0.0, 2, 10.0, 10.0), (1.0, 3, 5.0, 5.0), (1.5, 4, 5.0, 5.0), (2.0, 1, 14.0, 14.0))
    assert schedule(4, *jobs, security_time=0) == [(0, "0-1"), (10, "0-2"), (15, "0-3"), (20, "0")]
    assert schedule(4, *jobs, security_time=1) == [(0, "0-1"), (10, "0-2"), (16, "0-3"), (2, "3")]


def test_a_reservation_keeps_its_hosts_from_begin_to_end():
    gantt = Gantt(0.0, 0b001)
    gantt.release(10.0, 0b110)
    assert gantt.reserve(2, 10.0) == (10.0, 0b011)
    # one host is free at any time, but until 10 it is host 0 and from then on host 2
    assert gantt.reserve(1, 15.0) == (10.0, 0b100)
    assert gantt.reserve(1, 10.0) == (0.0, 0b001)


def test_a_job_for_which_there_never_are_hosts_gets_none():
    gantt = Gantt(0.0, 0b1)
    assert gantt.reserve(2, 1.0) == (math.inf, 0)
    assert gantt.reserve(1000, 1.0) == (math.inf, 0)
    assert gantt.reserve(1, 1.0) == (0.0, 0b1)


def test_jobs_of_no_length_that_begin_now_do_not_share_hosts():
    gantt = Gantt(1e9, 0b111)
    assert [gantt.reserve(1, 1e-9) for _ in range(3)] == [(1e9, 0b001), (1e9, 0b010), (1e9, 0b100)]


def test_what_found_no_place_hides_none_from_what_is_narrower_or_shorter():
    gantt = Gantt(0.0, 0b0011)
    gantt.release(10.0, 0b0100)
    gantt.release(20.0, 0b1000)
    assert gantt.reserve(3, 12.0) == (10.0, 0b0111)
    assert gantt.reserve(2, 11.0) == (22.0, 0b0011)
    assert gantt.reserve(2, 10.0) == (0.0, 0b0011)
    assert gantt.reserve(1, 1.5) == (20.0, 0b1000)


def test_what_happens_within_the_reaction_time_is_decided_together():
    # the second job comes 1 s after the first, and both start when the first has waited 1.5 s; then the end of the
    # first at 11.5 is answered at 13
    jobs = ((0.0, 2, 10.0, 10.0), (1.0, 2, 20.0, 20.0), (2.0, 2, 10.0, 10.0))
    assert schedule(4, *jobs, reaction=1.5) == [(1.5, "0-1"), (1.5, "2-3"), (13.0, "0-1")]


@pytest.mark.parametrize("spec", ["kamelot", "kamelot,security_time=0", "kamelot,reaction=2"])
def test_it_keeps_the_rules_of_policies(spec):
    assert try_policy(lambda: find_policy(spec)) == []


@pytest.mark.parametrize("option", ["security_time=-1", "reaction=inf", "reaction=nan"])
def test_numbers_that_make_no_sense_are_refused(option):
    with pytest.raises(ConfigError, match=f"kamelot: option {option.partition('=')[0]}"):
        find_policy(f"kamelot,{option}")
