"""Who gives way to whom, on schedules that can be checked by hand; and what is refused."""

import math

import pytest

from decision.model.errors import ConfigError, PolicyError
from decision.model.record import FinalState
from decision.model.workload import POWER_SUPPLY, Composed, Delay, Job, MachineEvent, Workload, Worth
from decision.policies.registry import find_policy
from decision.rl.envs.setup import equal_hosts
from decision.simulation import simulate_workloads


def job(name: str, at: float, size: int, run: float, value: float = math.nan, **worth: float) -> Job:
    """A job that says how long it runs."""
    said = Worth(value=value, expected=run, **worth)
    return Job(id=f"w0!{name}", submit_time=at, size=size, walltime=run + 60, profile=f"d{run:g}", worth=said)


def run(policy, *jobs: Job, supply: tuple[tuple[float, int], ...] = (), hosts: int = 4):
    """What each job did: (start, end), or its final state where that is not success."""
    profiles = {job.profile: Delay(float(job.profile[1:])) for job in jobs}
    workload = Workload(name="w0", jobs=jobs, profiles=profiles, nb_res=hosts)
    events = [MachineEvent(timestamp=at, type=POWER_SUPPLY, hosts=(k,)) for at, k in supply]
    table = simulate_workloads(equal_hosts(hosts), [workload], policy, events=events).jobs
    columns = zip(table.id, table.final_state.tolist(), table.start_time, table.runtime, strict=True)
    success = FinalState.COMPLETED_SUCCESSFULLY
    return {
        name.removeprefix("w0!"): (start, start + ran) if state == success else FinalState(state).name
        for name, state, start, ran in columns
    }


KILLED, REJECTED = "COMPLETED_KILLED", "REJECTED"


def test_a_job_of_less_value_gives_way_and_goes_on_with_what_is_left() -> None:
    done = run("hvf+first-fit,suspend=value", job("a", 0, 4, 100, 1), job("b", 30, 4, 50, 9))
    assert done == {"a": KILLED, "b": (30, 80), "a#1": (80, 150)}


def test_a_restart_takes_its_time_once_each_time() -> None:
    jobs = job("a", 0, 4, 100, 1), job("b", 30, 4, 50, 9), job("c", 85, 4, 10, 9)
    done = run("hvf+first-fit,suspend=value,restart=20", *jobs)
    # a#1 begins at 80, is suspended at 85 within its restart, and begins that again at 95
    assert done == {"a": KILLED, "b": (30, 80), "a#1": KILLED, "c": (85, 95), "a#2": (95, 185)}


def test_value_per_host_second_left_decides_under_density() -> None:
    jobs = job("long", 0, 4, 400, 40), job("short", 300, 4, 10, 3)
    # at 300 s, long has 40 / (4 * 100) left, short 3 / (4 * 10)
    assert run("density+first-fit,suspend=density", *jobs)["short"] == (400, 410)
    assert run("density+first-fit,suspend=density", job("long", 0, 4, 400, 20), jobs[1])["short"] == (300, 310)


def test_no_more_jobs_give_way_than_are_needed() -> None:
    small = [job(name, 0, 1, 100, value) for name, value in (("a", 4), ("b", 3), ("c", 2), ("d", 1))]
    done = run("hvf+first-fit,suspend=value", *small, job("e", 10, 2, 20, 9))
    assert (done["a"], done["b"], done["e"]) == ((0, 100), (0, 100), (10, 30))
    assert (done["c#1"], done["d#1"]) == ((30, 120), (30, 120))


def test_whom_others_were_suspended_for_starts_before_those_that_came_first() -> None:
    jobs = job("a", 0, 4, 100, 1), job("first", 1, 4, 10, 1), job("best", 2, 4, 10, 9)
    assert run("fcfs,suspend=value", *jobs)["first"] == (100, 110)  # strict: nothing behind it starts
    done = run("first-fit,suspend=value", *jobs)
    assert (done["best"], done["first"], done["a#1"]) == ((2, 12), (12, 22), (22, 120))


def test_at_most_as_many_hosts_compute_as_have_power() -> None:
    jobs = [job(name, 0, 1, 10) for name in "abcd"]
    assert run("fcfs", *jobs, supply=((0, 2), (10, 1), (25, 4))) == {
        **{"a": (0, 10), "b": (0, 10), "c": (10, 20), "d": (20, 30)}
    }


@pytest.mark.parametrize("policy", ["easy", "conservative", "sjf+first-fit", "kamelot", "fcfs,guard=5"])
def test_every_policy_obeys_a_supply(policy: str) -> None:
    jobs = [job(name, at, size, 20) for at, (name, size) in enumerate(zip("abcdef", (3, 1, 2, 4, 1, 2), strict=True))]
    done = run(f"{policy},beyond=suspend", *jobs, supply=((0, 3), (30, 1), (50, 2), (120, 4)))
    ends = [(start, 1) for start, _ in _spans(done)] + [(end, -1) for _, end in _spans(done)]
    assert len([end for end in ends if end[1] > 0]) == 6, "all end, d when there is power for it"
    assert done["d"][0] >= 120


def _spans(done):
    return [span for span in done.values() if isinstance(span, tuple)]


def test_the_least_value_gives_way_to_a_falling_supply() -> None:
    jobs = [job(name, 0, 1, 100, value) for name, value in (("a", 2), ("b", 3), ("c", 1), ("d", 1))]
    done = run("fcfs", *jobs, supply=((0, 4), (10, 2), (60, 4)))
    assert done == {"a": (0, 100), "b": (0, 100), "c": KILLED, "d": KILLED, "c#1": (60, 150), "d#1": (60, 150)}
    done = run("fcfs,beyond=grid", *jobs, supply=((0, 4), (10, 2), (60, 4)))
    assert set(done.values()) == {(0, 100)}


def test_jobs_that_cannot_end_in_time_leave_unless_they_are_kept() -> None:
    jobs = job("a", 0, 4, 100), job("b", 0, 4, 50, deadline=140), job("c", 0, 4, 50, deadline=150)
    assert run("fcfs", *jobs) == {"a": (0, 100), "b": REJECTED, "c": (100, 150)}
    assert run("fcfs,late=keep", *jobs)["b"] == (100, 150)


def test_a_job_that_never_gets_power_leaves_when_it_is_late() -> None:
    assert run("fcfs", job("a", 0, 4, 50, deadline=140), supply=((0, 2),)) == {"a": REJECTED}


def test_orders_by_worth() -> None:
    jobs = [
        job("first", 0, 4, 10, 5, qos=60, deadline=1000),
        job("dense", 1, 4, 10, 8, qos=50, deadline=900),
        job("valued", 1, 4, 40, 9, qos=70, deadline=800),
        job("good", 1, 4, 20, 1, qos=100, deadline=950),
        job("urgent", 1, 4, 30, 2, qos=80, deadline=700),
    ]
    for order, best in (("density", "dense"), ("hvf", "valued"), ("qos", "good"), ("edf", "urgent")):
        assert run(order, *jobs)[best][0] == 10, order


class Twice:
    """Suspends its only running job twice in a plan."""

    def reset(self, platform, seed):
        """It remembers nothing."""

    def decide(self, cluster, plan):
        """Start, then suspend."""
        for waiting in cluster.queue:
            plan.start(waiting)
        for running in cluster.running:
            plan.suspend(running)
            plan.suspend(running)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("easy,suspend=value", "suspend=... breaks reservations: it needs backfill=none or first-fit"),
        ("fcfs,suspend=value,guard=60", "suspend=... breaks reservations: it cannot have the option guard"),
        ("fcfs,suspend=values", "there is no suspend 'values'"),
        ("fcfs,late=never", "there is no late 'never'"),
        ("fcfs,beyond=sun", "there is no beyond 'sun'"),
        ("fcfs,restart=-1", "option restart=-1 must be finite and not negative"),
    ],
)
def test_options_that_make_no_sense_are_refused(policy: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace(".", r"\.")):
        find_policy(policy)


@pytest.mark.parametrize(("policy", "field"), [("hvf", "value"), ("density", "value"), ("qos", "qos")])
def test_orders_by_worth_need_it_of_every_job(policy: str, field: str) -> None:
    with pytest.raises(ConfigError, match=rf"job w0!a has no '{field}', and policy {policy} needs one"):
        run(policy, job("a", 0, 1, 10))


def test_what_cannot_be_cut_is_refused_where_jobs_may_be_suspended() -> None:
    composed = Job(id="w0!a", submit_time=0.0, size=1, profile="c", worth=Worth(value=1.0))
    workload = Workload(name="w0", jobs=[composed], profiles={"d": Delay(5.0), "c": Composed(("d",), 2)}, nb_res=4)
    with pytest.raises(ConfigError, match="job w0!a cannot be suspended: its profile 'c' is not a delay"):
        simulate_workloads(equal_hosts(4), [workload], "density,suspend=density")


def test_a_job_is_suspended_once() -> None:
    with pytest.raises(PolicyError, match="w0!a is named by two actions of one plan"):
        run(Twice(), job("a", 0, 1, 100), job("b", 10, 1, 100))
