"""What a guard promises, on any workload whose jobs end by their walltime, and with any policy."""

import numpy as np
import pytest
from helpers.cases import by_day
from helpers.policy_toys import Given, Instant, Toy, platform, run, run_toy
from helpers.policy_worlds import workloads
from helpers.reference_policies import Job
from hypothesis import given, settings
from hypothesis import strategies as st

from decision.model.workload import Delay, Workload
from decision.model.workload import Job as JobToCome
from decision.policies import find_policy
from decision.policies.memory import longest_known, longest_wait
from decision.policies.options import AUTO, Allocation, Backfill, Order, PolicyConfig
from decision.policies.profile import least_free
from decision.simulation import simulate_workloads

PROMISES = settings(max_examples=by_day(50, of=150), deadline=None, derandomize=True)
LIMITS = st.sampled_from([0.0, 3.0, 12.0, 40.0])
GUARDS = LIMITS.map(lambda limit: {"guard": limit}) | st.just({"guard_times": AUTO})
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


@given(workloads(), st.sampled_from(list(Order)), LIMITS)
@PROMISES
def test_every_job_starts_that_fits_beside_the_reservations(work, order, limit):
    def look(instant: Instant) -> None:
        memory, now = instant.toy.memory, instant.now
        if not any(job.number < memory.nb_guarded for job in instant.queue):
            return
        begun = [job for job in instant.queue if job.number in instant.starts]
        free = work.hosts - sum(r.job.size for r in instant.running) - sum(job.size for job in begun)
        for job in instant.queue:
            if job not in begun and job.number >= memory.nb_guarded and job.size <= free:
                assert least_free(memory, now, now + job.walltime) < job.size

    run(work, PolicyConfig(order=order, backfill=Backfill.FIRST_FIT, guard=limit), look)


@pytest.mark.parametrize(("size", "walltime", "start"), [(1, 200.0, 15.0), (2, 80.0, 15.0), (2, 200.0, 110.0)])
def test_a_smaller_or_a_shorter_job_starts_though_the_one_before_it_may_not(size, walltime, start):
    """The second job is guarded and has three of four hosts from 100 s on; the third wants two of them for 200 s."""
    jobs = [Job(0, 0.0, 2, 100.0), Job(1, 1.0, 3, 10.0), Job(2, 14.0, 2, 200.0), Job(3, 15.0, size, walltime)]
    work = Given(jobs, [job.walltime for job in jobs], 4)
    config = PolicyConfig(order=Order.FCFS, backfill=Backfill.FIRST_FIT, guard=12.0)
    assert run(work, config).tolist() == [0, 100, 110, start]


@given(workloads(), st.sampled_from(list(Order)), RULES)
@PROMISES
def test_a_limit_that_no_job_reaches_changes_nothing(work, order, backfill):
    config = PolicyConfig(order=order, backfill=backfill)
    assert run(work, config._replace(guard=1e9)).tolist() == run(work, config).tolist()


@given(workloads(), RULES, GUARDS)
@PROMISES
def test_allocation_never_changes_when_a_guarded_job_starts(work, backfill, guard):
    config = PolicyConfig(order=Order.SAF, backfill=backfill, **guard)
    first, *others = (run(work, config._replace(allocation=each)).tolist() for each in Allocation)
    assert all(other == first for other in others)


@given(workloads(overruns=True, moves=True), st.sampled_from(list(Order)), RULES, GUARDS)
@PROMISES
def test_every_job_starts_once_though_jobs_overrun_and_hosts_move(work, order, backfill, guard):
    started: list[int] = []
    run(work, PolicyConfig(order=order, backfill=backfill, **guard), lambda instant: started.extend(instant.starts))
    assert sorted(started) == list(range(len(work.jobs)))


# --- Relative to EASY ----------------------------------------------------------------------------------------------


def easy_waits(work: Given) -> np.ndarray:
    return run(work, PolicyConfig(backfill=Backfill.EASY)) - [job.submit_time for job in work.jobs]


@given(workloads(), st.sampled_from(list(Order)), RULES)
@PROMISES
def test_the_shadow_knows_in_the_end_how_long_easy_lets_jobs_wait(work, order, backfill):
    """Under any policy, and though nobody knows a run time before the job has ended."""
    toy = Toy(work.hosts, PolicyConfig(order=order, backfill=backfill, guard_times=AUTO), jobs=len(work.jobs))
    known: list[float] = []
    run_toy(work, toy, lambda instant: known.append(longest_known(toy.memory)))
    toy.state.now = 1e9
    assert longest_wait(toy.state, toy.memory) == pytest.approx(easy_waits(work).max())
    assert known == sorted(known) and known[-1] <= easy_waits(work).max() + 1e-9, "what is known is never too long"


@given(workloads(early=False), st.sampled_from(list(Order)), RULES)
@PROMISES
def test_the_shadow_is_at_the_present_where_all_run_to_their_walltime(work, order, backfill):
    """And no job takes no time there because it waits for long."""
    easy = easy_waits(work)
    submit = np.array([job.submit_time for job in work.jobs])

    def look(instant: Instant) -> None:
        come = submit <= instant.now
        waits = np.minimum(easy[come], instant.now - submit[come])
        assert np.isclose(longest_wait(instant.toy.state, instant.toy.memory), waits.max(initial=0.0))

    toy = Toy(work.hosts, PolicyConfig(order=order, backfill=backfill, guard_times=AUTO), jobs=max(len(work.jobs), 1))
    toy.memory.excuse = np.inf
    run_toy(work, toy, look)


class FirstInQueue:
    """When the job that waits first is to start at the latest, worked out with nothing of the package's."""

    def __init__(self, hosts: int) -> None:
        self.hosts, self.begin, self.longest = hosts, dict[int, float](), 0.0

    def look(self, instant: Instant) -> None:
        longest = longest_wait(instant.toy.state, instant.toy.memory)
        self.longest = max(self.longest, longest)
        taken = [(r.start_time, r.start_time + r.job.walltime, r.job.size) for r in instant.running]
        for job in instant.queue[:1]:
            if job.number not in self.begin:
                self.begin[job.number] = earliest(instant.now, self.hosts, taken, job)


@given(workloads(), st.sampled_from(list(Order)), RULES)
@PROMISES
def test_the_first_in_the_queue_starts_in_time_or_when_its_hosts_were_free_at_the_earliest(work, order, backfill):
    """From the decision on at which no older job waits."""
    first = FirstInQueue(work.hosts)
    starts = run(work, PolicyConfig(order=order, backfill=backfill, guard_times=AUTO), first.look)
    for number, begin in first.begin.items():
        in_time = work.jobs[number].submit_time + 1.45 * first.longest
        assert starts[number] <= max(begin, in_time) + 1e-3


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


class NeverWide:
    """Starts in order of submission all jobs but those on all hosts."""

    def reset(self, platform, seed):
        self.hosts = len(platform.hosts)

    def decide(self, cluster, plan):
        for job in cluster.queue:
            if job.size <= plan.nb_free and job.size < self.hosts:
                plan.start(job)


def test_a_job_that_is_held_back_is_no_excuse_for_letting_it_and_those_behind_it_wait():
    """They ask for a hundred times what they run, and EASY is thought to let them wait for one another so long."""
    first = [(0.0, 2, 100.0), (0.0, 2, 100.0)]
    wide = [(5000.0 + k, 2, 10_000.0) for k in range(4)]
    small = [(5000.0 + 60 * k, 1, 50.0) for k in range(200)]
    jobs = [Job(k, *each) for k, each in enumerate(first + sorted(wide + small))]
    work = Given(jobs, [min(job.walltime, 100.0) for job in jobs], 2)
    easy = waits_under(find_policy("easy"), work).max()
    assert waits_under(find_policy(f"{__name__}:NeverWide,guard=3x"), work).max() <= 3 * easy


class LongestAlone:
    """Wants to start the job that asks for most, and no other."""

    def reset(self, platform, seed):
        pass

    def decide(self, cluster, plan):
        job = max(cluster.queue, key=lambda job: job.walltime, default=None)
        if job is not None and job.size <= plan.nb_free:
            plan.start(job)


def test_hosts_of_a_start_that_is_not_carried_out_go_to_one_that_delays_nobody():
    jobs = [Job(0, 0.0, 1, 50.0), Job(1, 1.0, 2, 10.0), Job(2, 20.0, 1, 100.0), Job(3, 21.0, 1, 10.0)]
    waits = waits_under(find_policy(f"{__name__}:LongestAlone,guard=5"), Given(jobs, [50.0, 10.0, 100.0, 10.0], 2))
    assert waits.tolist() == [0.0, 49.0, 40.0, 0.0]


def test_guarded_jobs_are_the_first_of_the_queue():
    toy = Toy(2, PolicyConfig(order=Order.LCFS, backfill=Backfill.FIRST_FIT, guard=10.0))
    toy.submit(2, 50.0)
    toy.decide()
    toy.carry_out()
    toy.submit(1, 50.0)
    toy.state.now = 4.0
    toy.submit(1, 50.0)
    toy.decide()
    toy.state.now = 12.0
    toy.decide()
    assert toy.memory.nb_guarded == 2
    assert toy.memory.reserved[1] == 50.0
