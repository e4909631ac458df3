"""Jobs whose hosts fail, by hand: two hosts, of which the first fails from 30 to 50 s."""

import pytest
from helpers.policy_toys import platform
from helpers.power_toys import workload

from decision.engine.rules import EngineOptions
from decision.model.errors import ConfigError
from decision.model.record import RunRecord
from decision.model.workload import MachineEvent, ParallelHomogeneous
from decision.policies.registry import find_policy
from decision.simulation import simulate_workloads

AWAY = (30.0, 50.0)


def run(policy: str, *away: tuple[float, float], sleeps: bool = False) -> RunRecord:
    """A job of two hosts that runs for 100 s, by whichever way."""
    moves = [(at, kind) for each in away for at, kind in zip(each, ("unavailable", "available"), strict=True)]
    events = [MachineEvent(timestamp=at, type=f"machine_{kind}", hosts=(0,)) for at, kind in moves]
    work = workload((0, 2, 150, 100))
    energy = EngineOptions(energy=sleeps)
    return simulate_workloads(platform(2, sleeps), [work], policy, events=events, engine_options=energy)


def ends(record: RunRecord) -> dict[str, tuple[float, float]]:
    """Start and end of each part."""
    jobs = record.jobs
    spans = zip(jobs.id, jobs.start_time.tolist(), (jobs.start_time + jobs.runtime).tolist(), strict=True)
    return {name: (pytest.approx(begin), pytest.approx(end)) for name, begin, end in spans}


@pytest.mark.parametrize(
    ("options", "parts", "lost"),
    [
        ("", {"w0!0": (0, 100)}, 0),
        ("failed=run", {"w0!0": (0, 100)}, 0),
        ("failed=kill", {"w0!0": (0, 30)}, 60),
        ("failed=resubmit", {"w0!0": (0, 30), "w0!0#1": (50, 150)}, 60),
        ("failed=resubmit,checkpoint_every=20", {"w0!0": (0, 30), "w0!0#1": (50, 130)}, 20),
        ("failed=resubmit,checkpoint_every=30", {"w0!0": (0, 30), "w0!0#1": (50, 120)}, 0),
        ("failed=resubmit,checkpoint_every=20,restart=5,checkpoint=3", {"w0!0": (0, 30), "w0!0#1": (50, 138)}, 36),
    ],
)
@pytest.mark.parametrize("policy", ["fcfs", "easy,guard=9", "helpers.green_worlds:Restful"])
def test_what_is_lost_and_what_is_left(policy: str, options: str, parts, lost: float) -> None:
    record = run(f"{policy},{options}" if options else policy, AWAY)
    assert ends(record) == parts
    assert record.lost_work == pytest.approx(lost)


def test_a_job_that_fails_again_goes_on_where_it_last_was_saved() -> None:
    record = run("fcfs,failed=resubmit,checkpoint_every=20,restart=5", AWAY, (60, 70), (100, 110))
    # 20 s are saved; #1 needs 85 and does 5 of them; #2 needs 85 and does 25, of which 20 are saved; #3 needs 65
    assert ends(record) == {"w0!0": (0, 30), "w0!0#1": (50, 60), "w0!0#2": (70, 100), "w0!0#3": (110, 175)}
    assert record.lost_work == pytest.approx(2 * (30 + 10 + 30 + 65 - 100))


def test_hosts_sleep_and_fail() -> None:
    record = run("easy,power=idle-timeout,idle_timeout=5,failed=resubmit", AWAY, (300, 400), sleeps=True)
    assert ends(record)["w0!0#1"] == (70, 170)  # the other host slept meanwhile, and takes 20 s to wake


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(ConfigError, match="checkpoint_every=9 goes with failed=resubmit"):
        find_policy("fcfs,checkpoint_every=9")
    with pytest.raises(ConfigError, match="there is no failed 'resumbit'; did you mean resubmit"):
        find_policy("fcfs,failed=resumbit")
    work = workload((0, 2, 150, 100))
    work.profiles["100"] = ParallelHomogeneous(1e9, 0.0)
    with pytest.raises(ConfigError, match=r"cannot be suspended: its profile '100' is not a delay.*failed=kill"):
        simulate_workloads(platform(2), [work], "fcfs,failed=resubmit")
