"""Hosts that draw different powers, jobs that come at once, and caps on power."""

from itertools import pairwise
from pathlib import Path

import numpy as np

from decision.model.platform import Host, Platform, PowerState, SleepState, draw_of
from decision.model.record import Floats, RunRecord
from decision.model.workload import Delay, Job, ParallelHomogeneous, Workload

POLICIES = (
    "fcfs",
    "sjf+easy,power=idle-timeout,idle_timeout=5",
    "conservative,power=keep-awake,keep_awake=2",
    "easy,guard=60",
    "first-fit,allocation=contiguous",
    "kamelot",
)
Rng = np.random.Generator


def hosts(rng: Rng, number: int) -> Platform:
    """Hosts of different watts that can sleep."""
    made = []
    for host in range(number):
        idle, epsilon, full = (float(watts) for watts in np.sort(rng.integers(50, 200, 3)))
        states = [PowerState(1e9, idle, epsilon, full), PowerState(1e9, 9, 9, 9)]
        states += [PowerState(1 / 3, *[float(rng.integers(20, 300))] * 3), PowerState(1 / 8, *[120.0] * 3)]
        sleep = (SleepState(pstate=1, switch_off=2, switch_on=3),)
        made.append(Host(id=host, name=f"h{host:02}", pstates=tuple(states), sleep=sleep, has_power=True))
    return Platform(hosts=tuple(made))


def jobs(rng: Rng, largest: int, delays: bool, number: int = 40) -> Workload:
    """Jobs of up to so many hosts; a third of them come at once."""
    made, seconds = [], {f"p{at}": float(at) for at in range(10, 60, 10)}
    for at, time in enumerate(np.sort(np.maximum(rng.integers(-100, 200, number), 0)).tolist()):
        profile = f"p{10 * int(rng.integers(1, 6))}"
        wall = seconds[profile] + float(rng.integers(1, 30))
        size = int(rng.integers(1, largest + 1))
        made.append(Job(id=f"w0!{at}", submit_time=float(time), size=size, walltime=wall, profile=profile))
    profiles = {n: Delay(s) if delays else ParallelHomogeneous(s * 1e9, 0.0) for n, s in seconds.items()}
    return Workload(name="w0", jobs=made, profiles=profiles, nb_res=largest)


def write_cap(rng: Rng, platform: Platform, folder: Path) -> tuple[Path, Floats, Floats]:
    """A file of watts by time, which in the end powers all hosts; its times and watts."""
    draw = draw_of(platform).watts
    times = np.append(0.0, np.cumsum(rng.integers(5, 40, 12))).astype(float)
    watts = rng.uniform(draw[0], draw[-1], len(times))
    watts[-1] = draw[-1]
    rows = (f"{time},{level!r}" for time, level in zip(times.tolist(), watts.tolist(), strict=True))
    path = folder / "cap.csv"
    path.write_text("\n".join(("time,watts", *rows)) + "\n")
    return path, times, watts


def passes(record: RunRecord, times: Floats, watts: Floats) -> list[tuple[float, float, float]]:
    """Where a run drew more than a cap: time, watts, and the least cap until power changed."""
    energy = record.energy
    assert energy is not None
    found = []
    rows = list(zip(energy.time.tolist(), np.asarray(energy.energy, float).tolist(), strict=True))
    for (begin, before), (end, after) in pairwise(rows):
        if end - begin > 1e-3:
            first, last = np.searchsorted(times, [begin + 1e-3, end - 1e-3], side="right") - 1
            drawn, least = (after - before) / (end - begin), float(watts[max(first, 0) : last + 1].min())
            if drawn > least * (1 + 1e-6):
                found.append((begin, drawn, least))
    return found
