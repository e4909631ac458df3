"""What the backfilling rules promise, on any workload whose jobs end by their walltime."""

import numpy as np
from helpers.cases import by_day
from helpers.policy_toys import Given, Instant, run
from helpers.policy_worlds import workloads
from hypothesis import given, settings
from hypothesis import strategies as st

from decision.policies.options import Allocation, Backfill, Order, PolicyConfig

PROMISES = settings(max_examples=by_day(50, of=150), deadline=None, derandomize=True)
EASY = PolicyConfig(backfill=Backfill.EASY)
CONSERVATIVE = PolicyConfig(backfill=Backfill.CONSERVATIVE)


def head_bound(instant: Instant) -> tuple[int, float] | None:
    """The first job that goes on waiting, and when it could start if everything ran to its walltime."""
    waiting = [job for job in instant.queue if job.number not in instant.starts]
    if not waiting:
        return None
    head, state = waiting[0], instant.toy.state
    started = [job for job in instant.queue if job.number in instant.starts]
    free = instant.free - sum(job.size for job in started)
    count = state.nb_running
    ends = list(zip(state.expected_end[:count], state.size[state.running[:count]], strict=True))
    ends += [(instant.now + job.walltime, job.size) for job in started if job.number < head.number]
    freed = sum(job.size for job in started if job.number > head.number)
    for end, hosts in sorted(ends):
        if free + freed >= head.size:
            break
        free += hosts
        bound = end
    return head.number, bound if free + freed >= head.size else np.inf


@given(workloads() | workloads(early=False))
@PROMISES
def test_easy_never_delays_the_head_job(work: Given) -> None:
    bounds: dict[int, float] = {}

    def look(instant: Instant) -> None:
        head = head_bound(instant)
        if head:
            bounds[head[0]] = min(head[1], bounds.get(head[0], np.inf))

    starts = run(work, EASY, look)
    assert all(starts[job] <= bound for job, bound in bounds.items())


@given(workloads())
@PROMISES
def test_the_shadow_time_only_comes_nearer_while_a_job_is_head(work: Given) -> None:
    shadow: dict[int, float] = {}

    def look(instant: Instant) -> None:
        waiting = [job.number for job in instant.queue if job.number not in instant.starts]
        if waiting and instant.toy.memory.head == waiting[0]:
            now = float(instant.toy.memory.head_start)
            assert now <= shadow.get(waiting[0], np.inf)
            shadow[waiting[0]] = now

    run(work, EASY, look)


@given(workloads(), st.sampled_from(list(Order)))
@PROMISES
def test_conservative_reservations_never_get_later(work: Given, order: Order) -> None:
    promised: dict[int, float] = {}

    def look(instant: Instant) -> None:
        for job in instant.queue:
            begin = float(instant.toy.memory.reserved[job.number])
            assert begin <= promised.get(job.number, np.inf)
            promised[job.number] = begin

    starts = run(work, CONSERVATIVE._replace(order=order), look)
    assert starts.tolist() == [promised[i] for i in range(len(starts))], "each starts when its reservation begins"


@given(workloads())
@PROMISES
def test_conservative_reservations_never_need_more_hosts_than_there_are(work: Given) -> None:
    def look(instant: Instant) -> None:
        reserved = instant.toy.memory.reserved
        spans = [(reserved[j.number], reserved[j.number] + j.walltime, j.size) for j in instant.queue]
        spans += [(r.start_time, r.start_time + r.job.walltime, r.job.size) for r in instant.running]
        for moment in {begin for begin, _, _ in spans if begin >= instant.now}:
            assert sum(hosts for begin, end, hosts in spans if begin <= moment < end) <= work.hosts

    run(work, CONSERVATIVE, look)


@given(workloads(), st.sampled_from(list(Backfill)), st.sampled_from(list(Order)))
@PROMISES
def test_allocation_never_changes_when_a_job_starts(work: Given, backfill: Backfill, order: Order) -> None:
    configs = [PolicyConfig(order=order, backfill=backfill, allocation=allocation) for allocation in Allocation]
    first, *others = (run(work, config).tolist() for config in configs)
    assert all(other == first for other in others)


@given(workloads(overruns=True), st.sampled_from(list(Backfill)), st.sampled_from(list(Order)))
@PROMISES
def test_every_job_starts_once_and_not_before_its_submission(work: Given, backfill: Backfill, order: Order) -> None:
    started: list[int] = []
    starts = run(work, PolicyConfig(order=order, backfill=backfill), lambda instant: started.extend(instant.starts))
    assert sorted(started) == list(range(len(work.jobs)))
    assert all(start >= job.submit_time for start, job in zip(starts, work.jobs, strict=True))
