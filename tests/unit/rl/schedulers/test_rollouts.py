"""Rollouts: a set is worth what follows it, and guarded jobs stay the first."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decision.model.workload import Delay, Job, Workload
from decision.rl.envs import equal_hosts
from decision.rl.schedulers import learned, rollouts
from decision.rl.schedulers.learned import LearnedOrderPolicy
from decision.simulation import simulate_workloads
from decision.state.cluster import new_state, platform_facts

HOSTS = 4
EARLIER = (HOSTS, 1e6), (HOSTS, 1e6)  # jobs that come first: one waits so long that no other is guarded
BEGIN = 3e6  # seconds: when the others come


def by_walltime(longest_first: bool = False, **judge: float) -> LearnedOrderPolicy:
    """EASY in the order of walltimes, which no wait changes, and rollouts that look at waiting times by walltimes."""
    weights = np.zeros(learned.NB_WEIGHTS)
    weights[learned.WALLTIME] = -1.0 if longest_first else 1.0
    weights[[learned.OFFSET, learned.RESERVE_AFTER, learned.GUARD_AFTER]] = 30.0, -1e9, 1.45
    weights[learned.JUDGE + rollouts.LATE] = -99.0
    for name, value in judge.items():
        weights[learned.JUDGE + getattr(rollouts, name)] = value
    policy = LearnedOrderPolicy(weights, bound=False)
    policy.weights[learned.SHORT] = 0.0  # no queue is too short to look ahead
    return policy


def batch(*jobs: tuple[int, float], begin: float = BEGIN) -> Workload:
    """Jobs of so many hosts and seconds that come together, and run as long as their walltimes."""
    rows = [*((0.0, *job) for job in EARLIER), *((begin, *job) for job in jobs)]
    made = [Job(id=f"w0!{k}", submit_time=t, size=n, walltime=w, profile=f"{w}") for k, (t, n, w) in enumerate(rows)]
    return Workload(name="w0", jobs=made, profiles={f"{w}": Delay(duration=w) for *_, w in rows}, nb_res=HOSTS)


def waits(workload: Workload, policy: LearnedOrderPolicy) -> list[float]:
    """Seconds, of the jobs that come together, in order of submission."""
    found = simulate_workloads(equal_hosts(HOSTS), [workload], policy).jobs
    begun = dict(zip(found.id, found.start_time.tolist(), strict=True))
    return [begun[job.id] - job.submit_time for job in workload.jobs[len(EARLIER) :]]


def test_the_job_that_lets_others_wait_less_comes_first():
    jobs = batch((4, 1000.0), (4, 10.0))
    assert waits(jobs, by_walltime(longest_first=True, MARGIN=1.0)) == [0, 1000]
    assert waits(jobs, by_walltime(longest_first=True)) == [10, 0]
    assert waits(jobs, by_walltime(longest_first=True, MARGIN=0.5)) == [10, 0]
    assert waits(jobs, by_walltime(longest_first=True, MARGIN=0.995)) == [0, 1000], "10 s are 0.01 of 1,000 s"


def test_a_short_queue_is_served_in_order_of_arrival():
    policy = by_walltime()
    policy.weights[learned.SHORT] = 2.0
    assert waits(batch((4, 1000.0), (4, 10.0)), policy) == [0, 1000]
    assert waits(batch((4, 1000.0), (4, 10.0), (4, 20.0)), policy) == [10, 0, 1010], "two are left after the first"


def test_jobs_of_a_short_queue_are_guarded_sooner():
    """Guarded jobs are served in order of submission: here after half of the longest wait, which is 1e6 s."""
    jobs = batch((4, 6e5), (4, 8e5), (4, 7e5))
    policy = by_walltime(MARGIN=1.0)
    assert waits(jobs, policy) == [0, 13e5, 6e5], "the shortest first"
    policy.weights[learned.SHORT_GUARD] = 0.5
    assert waits(jobs, policy) == [0, 13e5, 6e5], "two jobs are too many"
    policy.weights[learned.SHORT] = 2.0
    assert waits(jobs, policy) == [0, 6e5, 14e5]


def test_the_smallest_area_comes_first_where_the_machine_is_often_idle_and_the_queue_is_not_long():
    policy, often_idle = by_walltime(MARGIN=1.0), 2 * BEGIN  # two jobs of 1e6 s fill 37 % of that but for a week
    policy.weights[learned.SHORT_GUARD] = 0.5
    wide, narrow, last = (4, 1000.0), (1, 1500.0), (4, 2000.0)
    assert waits(batch(wide, narrow), policy) == [0, 1000], "the shortest first"
    assert waits(batch(wide, narrow, begin=often_idle), policy) == [1500, 0]
    assert waits(batch(wide, narrow, last, begin=often_idle), policy) == [0, 1000, 2500], "nine hosts"


some_jobs = st.lists(st.tuples(st.integers(1, HOSTS), st.integers(10, 99).map(float)), min_size=2, max_size=24)


@settings(max_examples=60, deadline=None)
@given(some_jobs, st.booleans())
def test_where_all_is_known_nothing_waits_longer_in_all(jobs, longest_first):
    """The rollout policy of a heuristic that goes on as it said is never worse: Bertsekas et al., proposition 1."""
    own = by_walltime(longest_first, MARGIN=1.0)
    searched = by_walltime(longest_first)
    assert sum(waits(batch(*jobs), searched)) <= sum(waits(batch(*jobs), own)) + 1e-6


def test_more_jobs_than_are_looked_at_wait():
    rng = np.random.default_rng(0)
    jobs = batch(*zip(rng.integers(1, HOSTS + 1, 450).tolist(), rng.integers(10, 99, 450).tolist(), strict=True))
    own, searched = (waits(jobs, by_walltime(MARGIN=margin)) for margin in (1.0, 0.0))
    assert sum(searched) < sum(own)


@pytest.fixture
def memory():
    """Of a policy on four hosts, three of which are used until 50 s."""
    state = new_state(*platform_facts(equal_hosts(HOSTS), energy=False), 3)
    state.nb_free = 1
    found = by_walltime().memory_for(state)
    found.release_time[0], found.release_hosts[0] = 50.0, 3
    for at, (size, walltime) in enumerate([(4, 60.0), (1, 100.0), (1, 10.0)]):
        found.window_size[at], found.window_walltime[at] = size, walltime
    return state, found


@pytest.mark.parametrize(
    ("guarded", "first", "keeps", "starting"),
    [
        (0, -1, True, [0, 0, 1]),  # EASY: the long one would delay the first
        (0, -1, False, [0, 1, 0]),  # whatever fits
        (0, 1, True, [0, 1, 0]),
        (0, 2, True, [0, 0, 1]),
        (1, -1, False, [0, 0, 1]),
        (1, 1, True, [0, 0, 1]),  # nothing comes before a guarded one
    ],
)
def test_hosts_are_kept_for_the_first_job_and_always_for_a_guarded_one(memory, guarded, first, keeps, starting):
    state, found = memory
    rollouts._start(state, found, 1, 3, 1, guarded, first, keeps)
    assert found.starts[1, :3].tolist() == starting


def test_a_reservation_counts_all_that_ends_until_then(memory):
    _, found = memory
    found.begun_end[:2], found.begun_hosts[:2] = (20.0, 50.0), (1, 2)
    ends = found.release_time, found.release_hosts
    assert rollouts.reserve_hosts(found, *ends, 0, 1, 0, 2, 0, 1) == (20.0, 0)
    assert rollouts.reserve_hosts(found, *ends, 0, 1, 0, 2, 0, 2) == (50.0, 4), "3 and 2 hosts come free then, too"
    assert rollouts.reserve_hosts(found, *ends, 0, 1, 1, 2, 0, 3) == (50.0, 2), "the first that begun has ended"
    assert rollouts.reserve_hosts(found, *ends, 0, 1, 0, 2, 0, 7)[0] == np.inf


def easy_by_counting(jobs: list[tuple[int, float]], starts: list[bool], ends: list[tuple[float, int]]) -> float:
    """The sum of waits from 0 s on, of jobs of so many hosts and seconds; everything counted again at each instant."""
    busy = [*ends, *((length, size) for (size, length), now in zip(jobs, starts, strict=True) if now)]
    queue, total, time = [job for job, now in zip(jobs, starts, strict=True) if not now], 0.0, 0.0

    def free(at: float) -> int:
        return HOSTS - sum(size for end, size in busy if end > at)

    while queue:
        time = min(end for end, _ in busy if end > time)
        first, extra, left = None, 0, []
        for size, length in queue:
            if size > free(time) and first is None:
                first = min(end for end, _ in busy if end > time and free(end) >= size)
                extra = free(first) - size
            harmless = first is None or time + length <= first
            if size > free(time) or not (harmless or size <= extra):
                left.append((size, length))
                continue
            extra -= 0 if harmless else size
            busy.append((time + length, size))
            total += time
        queue = left
    return total


lengths = st.integers(1, 30).map(float)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.integers(1, HOSTS), lengths), min_size=1, max_size=30), lengths, lengths, st.integers(0, 9)
)
def test_what_follows_a_set_is_easy_counted_at_each_instant(jobs, first, second, own):
    """Two hosts are busy until `first` and `second`; of the jobs the one at `own` starts now, if it fits."""
    starts = [at == own and size <= HOSTS - 2 for at, (size, _) in enumerate(jobs)]
    state = new_state(*platform_facts(equal_hosts(HOSTS), energy=False), 1)
    memory = by_walltime().memory_for(state)
    state.nb_free = HOSTS - 2
    memory.end[:2], memory.end_hosts[:2] = sorted([first, second]), 1
    for at, (size, length) in enumerate(jobs):
        memory.window_size[at], memory.window_runtime[at], memory.starts[0, at] = size, length, starts[at]
    found = rollouts.follow(state, memory, 0, len(jobs), 0, 0, 2, 1.0, np.inf)
    assert found == easy_by_counting(jobs, starts, [(first, 1), (second, 1)])
