"""What a guard promises, on any workload whose jobs end by their walltime, and with any policy."""

import numpy as np
import pytest
from helpers.policy_toys import Given, Instant, Toy, platform, run, run_toy
from helpers.policy_worlds import workloads
from helpers.reference_policies import Job
from hypothesis import given, settings
from hypothesis import strategies as st

from decision.model.workload import Delay, Workload
from decision.model.workload import Job as JobToCome
from decision.policies import find_policy
from decision.policies.config import AUTO, Allocation, Backfill, Order, PolicyConfig
from decision.policies.memory import GUARDED, LIMIT
from decision.policies.shadow import longest_wait
from decision.simulation import simulate_workloads

PROMISES = settings(max_examples=150, deadline=None, derandomize=True)
LIMITS = st.sampled_from([0.0, 3.0, 12.0, 40.0])
RULES = st.sampled_from([Backfill.NONE, Backfill.FIRST_FIT, Backfill.EASY])


def earliest(now: float, hosts: int, taken: list[tuple[float, float, int]], job: Job) -> float:
    """When a job fits at the earliest beside what takes hosts from begin to end; by trying."""
    for begin in sorted({now, *(end for _, end, _ in taken if end > now)}):
        end = begin + job.walltime
        moments = [begin, *(b for b, _, _ in taken if begin < b < end)]
        if all(sum(size for b, e, size in taken if b <= t < e) + job.size <= hosts for t in moments):
            return begin
    raise AssertionError("a job fits when all others have ended")


class Promises:
    """The first reservation of each guarded job, worked out with nothing of the package's.

    Call it after each decision, with what is running and waiting before it.
    """

    def __init__(self, hosts: int, limit: float) -> None:
        self.hosts, self.limit = hosts, limit
        self.begin: dict[int, float] = {}

    def look(self, instant: Instant) -> None:
        now = instant.now
        guarded = [j for j in instant.queue if now - j.submit_time >= self.limit]
        taken = [(r.start_time, r.start_time + r.job.walltime, r.job.size) for r in instant.running]
        for job in guarded:
            reserved = float(instant.toy.memory.reserved[job.number])
            if job.number not in self.begin:
                self.begin[job.number] = earliest(now, self.hosts, taken, job)
            assert reserved <= self.begin[job.number]
            self.begin[job.number] = reserved
            taken.append((reserved, reserved + job.walltime, job.size))


@given(workloads(), st.sampled_from(list(Order)), RULES, LIMITS)
@PROMISES
def test_guarded_jobs_start_by_their_first_reservation_which_never_gets_later(work, order, backfill, limit):
    promises = Promises(work.hosts, limit)
    starts = run(work, PolicyConfig(order=order, backfill=backfill, guard=limit), promises.look)
    assert all(starts[job] <= begin for job, begin in promises.begin.items())
    waited = [job for job in work.jobs if starts[job.number] - job.submit_time > limit]
    assert all(job.number in promises.begin for job in waited), "nobody waits for longer without a reservation"


@given(workloads(), st.sampled_from(list(Order)), RULES)
@PROMISES
def test_a_limit_that_no_job_reaches_changes_nothing(work, order, backfill):
    config = PolicyConfig(order=order, backfill=backfill)
    assert run(work, config._replace(guard=1e9)).tolist() == run(work, config).tolist()


@given(workloads(), RULES, LIMITS | st.just(AUTO))
@PROMISES
def test_allocation_never_changes_when_a_guarded_job_starts(work, backfill, limit):
    config = PolicyConfig(order=Order.SAF, backfill=backfill, guard=limit)
    first, *others = (run(work, config._replace(allocation=each)).tolist() for each in Allocation)
    assert all(other == first for other in others)


@given(workloads(overruns=True, moves=True), st.sampled_from(list(Order)), RULES, LIMITS | st.just(AUTO))
@PROMISES
def test_every_job_starts_once_though_jobs_overrun_and_hosts_move(work, order, backfill, limit):
    started: list[int] = []
    run(work, PolicyConfig(order=order, backfill=backfill, guard=limit), lambda instant: started.extend(instant.starts))
    assert sorted(started) == list(range(len(work.jobs)))


# --- auto ----------------------------------------------------------------------------------------------------------


@given(workloads(early=False), st.sampled_from(list(Order)), RULES)
@PROMISES
def test_the_limit_of_auto_follows_the_longest_wait_of_easy(work, order, backfill):
    """All run to their walltime, so the shadow knows at once what EASY would do."""
    easy = run(work, PolicyConfig(backfill=Backfill.EASY))
    submit = np.array([job.submit_time for job in work.jobs])

    def look(instant: Instant) -> None:
        come = submit <= instant.now
        waits = np.minimum(easy, instant.now)[come] - submit[come]
        assert np.isclose(instant.toy.memory.times[LIMIT], 1.2 * waits.max(initial=0.0))

    run(work, PolicyConfig(order=order, backfill=backfill, guard=AUTO), look)


@given(workloads())
@PROMISES
def test_the_shadow_of_easy_is_easy_itself(work):
    """Run times become known when the jobs end, which is when the shadow's end, too."""
    toy, longest = Toy(work.hosts, PolicyConfig(guard=AUTO), jobs=len(work.jobs)), []
    shadow = toy.memory
    toy.memory = Toy(work.hosts, PolicyConfig(backfill=Backfill.EASY), jobs=len(work.jobs)).memory
    starts = run_toy(work, toy, lambda instant: longest.append(longest_wait(toy.state, shadow)))
    assert longest[-1] == pytest.approx(max(starts - [job.submit_time for job in work.jobs]))


# --- Any policy ----------------------------------------------------------------------------------------------------


class Spoilsport:
    """Starts the last that came first, the longest jobs before all others, and never a job on all hosts if it can."""

    def reset(self, platform, seed):
        self.hosts = len(platform.hosts)

    def decide(self, cluster, plan):
        for job in sorted(cluster.queue, key=lambda job: (-job.walltime, -job.number)):
            if job.size <= plan.nb_free and (job.size < self.hosts or not cluster.running):
                plan.start(job)


def waits_under(policy, work: Given) -> np.ndarray:
    runtimes = {f"{r}": Delay(duration=r) for r in work.runtimes}
    jobs = [
        JobToCome(id=f"w0!{j.number}", submit_time=j.submit_time, size=j.size, walltime=j.walltime, profile=f"{r}")
        for j, r in zip(work.jobs, work.runtimes, strict=True)
    ]
    workload = Workload(name="w0", jobs=jobs, profiles=runtimes, nb_res=work.hosts)
    table = simulate_workloads(platform(work.hosts), [workload], policy).jobs
    order = np.argsort([int(name.partition("!")[2]) for name in table.id])
    return (table.start_time - table.submit_time)[order]


@given(workloads(), st.sampled_from([0.0, 12.0]))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_a_policy_that_knows_no_guard_is_bound_by_it(work, limit):
    """With everything guarded from its arrival the waits are bounded by the jobs that came before, whoever decides."""
    waits = waits_under(find_policy(f"{__name__}:Spoilsport,guard={limit}"), work)
    for job, wait in zip(work.jobs, waits, strict=True):
        # at the limit: what runs ends within the longest walltime, and what came before is not behind the job
        before = sum(j.walltime for j in work.jobs[: job.number])
        longest = max(j.walltime for j in work.jobs)
        assert wait <= limit + longest + before + 1e-3


def test_without_a_guard_the_same_policy_lets_a_wide_job_wait_for_ever():
    jobs = [Job(0, 0.0, 1, 10.0), Job(1, 1.0, 2, 10.0)] + [Job(2 + k, 5.0 * k + 2, 1, 10.0) for k in range(50)]
    work = Given(jobs, [10.0] * len(jobs), 2)
    assert waits_under(Spoilsport(), work)[1] > 200
    assert waits_under(find_policy(f"{__name__}:Spoilsport,guard=20"), work)[1] <= 30


def test_guarded_jobs_are_the_first_of_the_queue():
    toy = Toy(2, PolicyConfig(order=Order.LCFS, backfill=Backfill.FIRST_FIT, guard=10.0))
    toy.submit(2, 50.0)
    toy.decide()
    toy.carry_out()
    toy.submit(1, 50.0)
    toy.state.now[0] = 4.0
    toy.submit(1, 50.0)
    toy.decide()
    toy.state.now[0] = 12.0
    toy.decide()
    assert toy.memory.counts[GUARDED] == 2
    assert toy.memory.reserved[1] == 50.0
