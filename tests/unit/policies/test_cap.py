"""Caps on power: how many hosts they leave, by hand, and what is refused."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from helpers.policy_toys import platform
from helpers.power_toys import starts, workload

from decision.batsim.agent import make_agent
from decision.cli.app import app
from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.rules import EngineOptions
from decision.experiments.run import simulate_by_messages
from decision.files import write_platform, write_workload
from decision.model.errors import ConfigError
from decision.model.platform import Host, Platform, PowerState, draw_of
from decision.model.workload import POWER_SUPPLY, MachineEvent
from decision.policies.registry import find_agent, find_policy
from decision.policies.wrappers.supply import HostCap, capped_events, may_suspend, with_cap
from decision.simulation import simulate_workloads

SLEEPY = platform(4, sleeps=True)  # 95 W awake, computing or not; 100 W and 125 W on the way to and from sleep

FOUR = Platform(
    hosts=tuple(
        Host(id=i, name=f"h{i}", pstates=(PowerState(1e9, 100.0, 100.0, 200.0),), has_power=True) for i in range(4)
    )
)


def test_the_hosts_that_draw_most_may_be_those_that_compute() -> None:
    states = ((100.0, 150.0), (50.0, 200.0), (80.0, 90.0))
    made = (
        Host(id=i, name=f"h{i}", pstates=(PowerState(1e9, a, a, b),), has_power=True) for i, (a, b) in enumerate(states)
    )
    draw = draw_of(Platform(hosts=tuple(made)))
    assert draw.watts.tolist() == [230, 380, 430, 440]
    assert draw.hosts_within(np.array([229.0, 230, 400, 1000])).tolist() == [-1, 0, 1, 3]


def test_hosts_on_their_way_to_sleep_and_back_count_where_a_policy_sends_them() -> None:
    assert draw_of(SLEEPY).watts[0] == 4 * 125
    assert draw_of(SLEEPY, sleeps=False).watts[0] == 4 * 95


def test_less_starts_below_a_cap() -> None:
    work = workload((0, 2, 10, 9), (0, 2, 10, 9))
    for cap, begin in ((800, 0), (799, 9)):
        record = simulate_workloads(FOUR, [work], f"easy,cap={cap}", engine_options=EngineOptions(energy=True))
        assert starts(record) == [0, begin]


def test_a_cap_and_a_supply_are_one_supply() -> None:
    cap = HostCap(np.array([0.0, 20.0]), np.array([3, 1]))
    supply = [
        MachineEvent(timestamp=t, type=POWER_SUPPLY, hosts=(n, n, 4)) for t, n in ((10.0, 2), (20.0, 4), (30.0, 0))
    ]
    away = MachineEvent(timestamp=15.0, type="machine_unavailable", hosts=(0,))
    events = capped_events(cap, [*supply, away])
    assert [(event.timestamp, event.hosts) for event in events] == [
        *((0, (3,)), (10, (2, 2, 2)), (15, (0,)), (20, (1, 1, 1)), (30, (0, 0, 0)))
    ]


def test_jobs_need_not_be_cut_below_a_cap_that_stays(tmp_path: Path) -> None:
    (tmp_path / "cap.csv").write_text("time,watts\n0,800\n9,520\n")
    for cap, cuts in (("800", False), (str(tmp_path / "cap.csv"), True)):
        policy = find_policy("easy", {"cap": cap})
        assert may_suspend(policy, with_cap(policy, FOUR, (), ())) is cuts


@pytest.mark.parametrize(
    ("cap", "message"),
    [
        ("379", "cap=379: 379 W is not above the 380 W that the hosts of .* draw without a job; give more"),
        ("much", "cap=much must be watts, or a file of them by time"),
        ("nan", "cap=nan: nan W is not above"),
        ("900,beyond=grid", "cap=900 is not kept with beyond=grid"),
    ],
)
def test_a_cap_that_cannot_be_kept_is_refused(cap: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        with_cap(find_policy(f"fcfs,cap={cap}"), SLEEPY, (), ())


def test_a_job_that_could_never_start_is_named() -> None:
    work = workload((0, 2, 10, 9), (0, 3, 10, 9), (0, 5, 10, 9))
    with pytest.raises(ConfigError, match="job w0!1 needs 3 hosts, and the policy's cap on power lets 2 compute"):
        simulate_workloads(FOUR, [work], "easy,cap=600")


def test_hosts_must_say_what_they_draw() -> None:
    silent = Platform(hosts=(Host(id=0, name="h0", pstates=(PowerState(1e9),)),))
    with pytest.raises(ConfigError, match="does not say what host h0 draws"):
        with_cap(find_policy("fcfs,cap=900"), silent, (), ())


def test_a_scheduler_that_answers_messages_itself_has_no_cap() -> None:
    with pytest.raises(ConfigError, match="cannot have the option cap"):
        find_agent("pybatsim:filler", {"cap": "900"})


def test_batsim_must_tell_how_a_cap_changes(tmp_path: Path) -> None:
    (tmp_path / "cap.csv").write_text("time,watts\n0,800\n9,520\n")
    work = workload((0, 2, 10, 9))
    agent = make_agent("fcfs", {"cap": str(tmp_path / "cap.csv")}, platform=FOUR)
    with pytest.raises(ConfigError, match="changes by time; start Batsim with --forward-unknown-events and the events"):
        simulate_by_messages(EmbeddedEngine(FOUR, [work], (), EngineOptions()), agent)


def test_a_constant_cap_needs_nothing_of_batsim() -> None:
    work = workload((0, 2, 10, 9), (0, 2, 10, 9))
    agent = make_agent("easy", {"cap": "600"}, platform=FOUR)
    record = simulate_by_messages(EmbeddedEngine(FOUR, [work], (), EngineOptions()), agent)
    assert starts(record) == [0, 9]


def test_a_comparison_is_done_again_where_the_file_of_a_cap_changed(tmp_path: Path) -> None:
    write_platform(tmp_path / "p.xml", FOUR)
    write_workload(tmp_path / "w.json", workload((0, 2, 10, 9), (0, 2, 10, 9)))
    policy = f"easy,cap={tmp_path / 'cap.csv'}"
    files = ("-p", f"{tmp_path}/p.xml", "-w", f"{tmp_path}/w.json", "-o", f"{tmp_path}/out", "-j", "1")
    options = ("compare", *files, "--policy", policy, "--policy", "easy", "--metric", "wait", "--whole", "--json")
    waits = []
    for watts in (800, 600):
        (tmp_path / "cap.csv").write_text(f"time,watts\n0,{watts}\n")
        result = CliRunner().invoke(app, options)
        assert result.exit_code == 0, result.stderr
        rows = json.loads(result.stdout)["rows"]
        waits.append(next(row["score"][0] for row in rows if row["contender"] == policy))
    assert waits == [0, 4.5]
