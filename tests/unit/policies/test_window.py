"""Windows: known answers, worked out by hand, and a slow twin."""

import numpy as np
import pytest
from helpers.policy_toys import Toy
from helpers.window_reference import PlainWindow

from decision.batsim.agent import Agent
from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.reference.engine import ReferenceEngine
from decision.experiments.metrics import communication_hops
from decision.experiments.run import simulate_by_messages
from decision.files import load_platform
from decision.files.generate.jobs import workload_of
from decision.files.generate.platforms import full_tree, networked
from decision.model.errors import ConfigError, InternalError
from decision.model.platform import Link, Platform, PowerState
from decision.model.record import RunRecord
from decision.policies import ClusterView, Plan, find_policy
from decision.policies.options import PolicyConfig
from decision.policies.window import Window
from decision.simulation import simulate_workloads
from decision.state.cluster import platform_facts
from decision.state.plan_arrays import CALL_AT


def tree(*down: int) -> Platform:
    return networked(full_tree(down, [Link(1e9, 0.0)] * len(down)), (PowerState(1e9),))


def run(platform: Platform, policy, submit, sizes, runtimes, seed: int = 0) -> RunRecord:
    columns = np.array(submit, float), np.array(sizes), np.array(runtimes, float)
    return simulate_workloads(platform, [workload_of(*columns, len(platform.hosts))], policy, seed=seed)


def schedule(platform: Platform, policy, *jobs: tuple[float, int, float]) -> list[tuple[float, str]]:
    """Start (seconds) and hosts of each job, from (submission, hosts, runtime), times in seconds."""
    record = run(platform, policy, *zip(*jobs, strict=True))
    rows = zip(record.jobs.id, record.jobs.start_time.tolist(), record.jobs.allocation, strict=True)
    return [(start, where) for _, start, where in sorted(rows)]


def test_jobs_of_a_period_start_together_the_smallest_first_and_those_on_one_host_last():
    jobs = ((1.0, 3, 5.0), (2.0, 1, 5.0), (3.0, 2, 5.0))
    assert schedule(tree(2, 2, 2), "window,period=10,solver=sequential", *jobs) == [(10, "2-4"), (10, "5"), (10, "0-1")]


def test_a_job_that_comes_when_a_window_is_due_is_in_it():
    jobs = ((0.0, 2, 5.0), (10.0, 2, 5.0), (10.5, 2, 5.0))
    starts = schedule(tree(2, 2), "window,period=10,solver=sequential", *jobs)
    assert [start for start, _ in starts] == [0, 10, 20]


def test_a_window_takes_so_many_jobs_on_more_than_one_host():
    jobs = ((1.0, 2, 5.0), (2.0, 2, 5.0), (3.0, 1, 5.0), (4.0, 3, 5.0))

    def starts(number: int) -> list[float]:
        found = schedule(tree(2, 2, 2), f"window,period=10,solver=sequential,jobs={number}", *jobs)
        return [start for start, _ in found]

    assert starts(1) == [10, 20, 10, 30]
    assert starts(2) == [10, 10, 10, 20]
    assert starts(0) == [10, 10, 10, 10]


def test_who_has_waited_for_more_periods_comes_first_and_holds_up_those_behind():
    # the second does not fit at 20 s, when one comes that would, at 30 s and at 40 s
    jobs = ((1.0, 3, 31.0), (2.0, 4, 5.0), (11.0, 1, 5.0), (20.0, 1, 5.0))
    starts = schedule(tree(2, 2), "window,period=10,solver=sequential", *jobs)
    assert [start for start, _ in starts] == [10, 50, 60, 60]


def test_the_exact_window_keeps_a_large_job_on_one_switch():
    # host 0 is taken; in turn the job on four hosts would be on both switches, the one on three has the other switch
    jobs = ((0.0, 1, 100.0), (1.0, 3, 5.0), (2.0, 4, 5.0))
    platform = tree(4, 2, 2)
    assert schedule(platform, "window,period=10,solver=sequential", *jobs)[1:] == [(10, "1-3"), (10, "4-7")]
    jobs = ((0.0, 1, 100.0), (1.0, 2, 5.0), (2.0, 4, 5.0))
    assert schedule(platform, "window,period=10,solver=sequential", *jobs)[1:] == [(10, "1-2"), (10, "3-6")]
    for options in ("solver=exact", "strategy=free,solver=sequential", "solver=sa", "strategy=scas,solver=sa"):
        found = schedule(platform, f"window,period=10,{options}", *jobs)[1:]
        assert [len({int(host) // 4 for host in hosts_of(where)}) for _, where in found] == [1, 1], options


def hosts_of(text: str) -> list[int]:
    first, _, last = text.partition("-")
    return list(range(int(first), int(last or first) + 1))


def plan_of(toy: Toy, policy: Window) -> list[float]:
    """Times for which the policy asks to be called."""
    policy.decide(ClusterView(toy.state, toy.facts, ()), Plan(toy.plan, toy.state, toy.facts))
    calls = toy.plan.kind[: toy.plan.nb_actions] == CALL_AT
    return toy.plan.time[: toy.plan.nb_actions][calls].tolist()


def test_windows_are_called_for_only_while_a_job_waits_that_would_fit():
    toy, policy = Toy(4, PolicyConfig()), Window(period=10, solver="sequential")
    toy.facts = platform_facts(tree(2, 2), energy=False)[0]
    policy.reset(tree(2, 2), 0)
    toy.state.now = 3.0
    assert plan_of(toy, policy) == []
    toy.submit(5)  # never fits
    assert plan_of(toy, policy) == []
    toy.submit(2)
    assert plan_of(toy, policy) == [10.0]
    toy.state.now = 4.0
    assert plan_of(toy, policy) == []  # once for each


@pytest.mark.parametrize("seed", range(8))
def test_the_schedule_is_that_of_its_twin(seed):
    rng = np.random.default_rng(seed)
    platform = tree(*rng.choice([2, 3, 4], 3))
    hosts, jobs = len(platform.hosts), 80
    period, most = float(rng.choice([7, 10.5, 60])), int(rng.integers(0, 4))
    submit = np.cumsum(rng.choice([0, 1, 3.5, period], jobs))
    columns = submit, rng.integers(1, hosts + 1, jobs), rng.choice([1, period, 25, 40.25], jobs)
    fast = run(platform, Window(period, most, solver="sequential"), *columns)
    slow = run(platform, PlainWindow(period, most), *columns)
    assert fast.jobs.id == slow.jobs.id
    assert np.array_equal(fast.jobs.start_time, slow.jobs.start_time)
    assert fast.jobs.allocation == slow.jobs.allocation


def test_the_same_seed_gives_the_same_windows_and_another_one_others():
    rng = np.random.default_rng(0)
    columns = np.cumsum(rng.integers(1, 20, 60)), rng.integers(1, 20, 60), rng.integers(50, 200, 60)
    one, same, other = (run(tree(4, 4, 4), "window,steps=3", *columns, seed=seed).jobs for seed in (1, 1, 2))
    assert one.allocation == same.allocation
    assert one.allocation != other.allocation
    assert np.array_equal(one.start_time, other.start_time)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("period=0", "option period=0 must be finite and above 0"),
        ("period=-1", "option period=-1 must"),
        ("period=nan", "option period=nan must"),
        ("jobs=-1", "option jobs=-1 must be at least 0"),
        ("steps=-5", "option steps=-5 must be at least 0"),
        ("solver=exat", "there is no solver 'exat'; did you mean exact?"),
        ("strategy=dca", "there is no strategy 'dca'"),
        ("solver=exact,strategy=dcas", "solver=exact is for strategy=scas or free; found strategy=dcas"),
        ("repair=x.ckpt", "option repair is for solver=nsa; found solver=sa"),
        ("solver=exact,repair=best", "option repair is for solver=nsa; found solver=exact"),
        ("solver=nsa,strategy=free", "solver=nsa is for strategy=dcas; found strategy=free"),
        ("solver=nsa,repair=worst", "repair=worst is neither best nor a checkpoint"),
        ("solver=nas", "there is no solver 'nas'; did you mean nsa?"),
    ],
)
def test_options_that_make_no_sense_are_refused_in_one_line(options, why):
    with pytest.raises(ConfigError) as refused:
        find_policy(f"window,{options}")
    assert str(refused.value).startswith("policy window")
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("jobs", [0, 13])
def test_large_exact_windows_are_refused_without_what_solves_them(monkeypatch, jobs):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    find_policy("window,solver=exact,jobs=12")
    why = rf"solver=exact with jobs={jobs} .* needs highspy: pip install 'highspy>=1.15'$"
    with pytest.raises(ConfigError, match=why):
        find_policy(f"window,solver=exact,jobs={jobs}")


def large_window() -> tuple[list[float], list[int], list[float]]:
    """Sixteen jobs on 2 to 17 hosts that come within a period."""
    return list(range(1, 17)), list(range(17, 1, -1)), [50.0] * 16


def test_no_search_finds_a_better_window_of_more_than_twelve_sizes():
    pytest.importorskip("highspy")
    hops = []
    for solver in ("exact,steps=20000", "sa,strategy=scas,steps=20000", "sa,strategy=scas,steps=20"):
        record = run(tree(5, 4, 10), find_policy(f"window,jobs=0,solver={solver}"), *large_window())
        assert set(record.jobs.start_time) == {60}
        hops.append(communication_hops(record.jobs, tree(5, 4, 10).distance).sum())
    assert hops[0] <= hops[1] + 1e-9
    assert hops[0] < hops[2]


@pytest.mark.parametrize("guard", ["", ",guard=9000"])
def test_windows_on_any_hosts_say_how_far_from_the_best_they_are(guard):
    rng, platform = np.random.default_rng(2), tree(5, 4, 10)
    columns = np.cumsum(rng.integers(0, 20, 60)), rng.integers(2, 31, 60), rng.integers(50, 900, 60)
    submit, sizes, runtimes = columns
    jobs = workload_of(submit.astype(float), sizes, runtimes.astype(float), 200, walltimes=np.full(60, 900.0))
    found = simulate_workloads(platform, [jobs], f"window,solver=exact,strategy=free{guard}")
    assert 0 < found.window_gap < 0.05
    free = run(platform, find_policy("window,solver=exact,strategy=free"), [1, 2, 3], [3, 4, 5], [5, 5, 5])
    assert free.window_gap == 0, "each job has a switch of its own"
    assert run(platform, find_policy("window,solver=exact"), *columns).window_gap == 0
    assert np.isnan(run(platform, find_policy("window,solver=sa"), *columns).window_gap)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), InternalError("no optimum")])
def test_what_happens_while_a_large_window_is_solved_ends_the_run(monkeypatch, error):
    def fail(*arguments):
        raise error

    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    monkeypatch.setattr("decision.policies.window.place_by_highs", fail)
    with pytest.raises(type(error)):
        run(tree(5, 4, 10), find_policy("window,jobs=0,solver=exact"), *large_window())
    platform, jobs = tree(5, 4, 10), workload_of(*map(np.array, large_window()), 200)
    agent = Agent("window", {"jobs": "0", "solver": "exact"}, platform=platform)
    with pytest.raises(type(error)):
        simulate_by_messages(EmbeddedEngine(platform, [jobs], ()), agent)


@pytest.mark.parametrize(
    ("name", "why"), [("torus64", "is a torus"), ("dragonfly64", "is a dragonfly"), ("toy", "is unknown")]
)
def test_what_is_no_tree_is_refused_by_its_name(request, name, why):
    platform = load_platform(request.config.rootpath / "platforms" / f"{name}.xml")
    with pytest.raises(ConfigError, match=f"policy window needs a fat-tree, and .*{why}"):
        find_policy("window").reset(platform, 0)


@pytest.mark.parametrize("solver", ["sa", "nsa", "exact", "exact,strategy=free", "sequential", "nsa,undo=false"])
def test_windows_are_the_same_in_both_engines_and_behind_messages(solver):
    rng, platform, policy = np.random.default_rng(5), tree(4, 2, 3), f"window,period=10,steps=30,solver={solver}"
    submit = np.sort(rng.integers(0, 300, 60)).astype(float)
    jobs = workload_of(submit, rng.integers(1, 9, 60), rng.integers(5, 60, 60).astype(float), 24)
    simulated = simulate_workloads(platform, [jobs], find_policy(policy))
    for engine in (EmbeddedEngine, ReferenceEngine):
        told = simulate_by_messages(
            engine(platform, [jobs], ()), Agent("window", options_of(policy), platform=platform)
        )
        assert rows_of(told) == rows_of(simulated)


def options_of(policy: str) -> dict[str, str]:
    return dict(option.split("=") for option in policy.split(",")[1:])


def rows_of(record: RunRecord) -> list[tuple[str, float, str]]:
    return sorted(zip(record.jobs.id, record.jobs.start_time.tolist(), record.jobs.allocation, strict=True))


def test_no_window_is_called_for_while_nothing_waits():
    asked: list[float] = []

    class Listening(Window):
        def decide(self, cluster: ClusterView, plan: Plan) -> None:
            super().decide(cluster, plan)
            asked.append(cluster.now)

    class Wrapped:
        def reset(self, platform, seed):
            self.policy = Listening(period=10.0, solver="nsa")
            self.policy.reset(platform, seed)

        def decide(self, cluster, plan):
            self.policy.decide(cluster, plan)

    run(tree(4, 2, 2), Wrapped(), [1.0, 5000.0], [3, 3], [2.0, 2.0])
    assert sorted(set(asked)) == [0, 1, 10, 12, 5000, 5002], "the second window is at the job's arrival itself"


@pytest.mark.parametrize("policy", ["window", "window,solver=nsa", "fcfs,allocation=tree"])
def test_a_job_wider_than_the_platform_is_rejected(policy):
    record = run(tree(2, 2, 2), find_policy(policy), [1.0, 2.0], [9, 2], [5.0, 5.0])
    assert [job for job, start, _ in rows_of(record) if np.isfinite(start)] == ["w0!1"]
