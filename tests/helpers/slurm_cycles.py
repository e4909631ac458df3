"""Each recorded cycle of backfill, simulated from the state that was recorded: what it tests and plans.

Nothing is guessed but how long nodes complete: the starts are those of the log, and priorities are calculated when
those of the log say that they were. A program, which runs without compiling: ``NUMBA_DISABLE_JIT=1 python
tests/helpers/slurm_cycles.py FOLDER CYCLES`` prints the counts as JSON.
"""

import lzma
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from decision.slurm.build import build_world, zero_of
from decision.slurm.case import Sources, read_case
from decision.slurm.kernels import allocate, backfill, clock, priority, select_nodes
from decision.slurm.kernels import world as at
from decision.slurm.text import read_date, read_hosts
from decision.state import bitmap

_COMPLETING = 3  # seconds
_LATE = 70  # seconds: the longest pause between two calculations of priorities


class Counts(msgspec.Struct):
    """How many there were, and how many the model has otherwise."""

    cycles: int = 0
    orders: int = 0  # cycles that test jobs in another order
    tests: int = 0
    priorities: int = 0
    plans: int = 0
    starts: int = 0  # planned starts that differ by more than 1 s
    nodes: int = 0  # of plans with the same start


def count_cycles(folder: Path, most: int) -> Counts:
    """Simulate the first cycles of a recording."""
    bitmap.count_ones = lambda word: int(word).bit_count()  # type: ignore[assignment]  # an instruction of compiled code
    files = {name: folder / f"{name}.txt" for name in ("config", "assoc", "qos")}
    files = {name: path for name, path in files.items() if path.is_file()}
    case, conf = read_case(Sources(conf=folder / "slurm.conf", jobs=folder / "sacct.txt", **files))
    case.__dict__["conf"] = conf
    world, zero = build_world(case, case.settings, [0]), zero_of(case)
    numbers = {job.id: number for number, job in enumerate(case.jobs)}
    hosts = {node.name: number for number, node in enumerate(case.nodes)}
    cycles = _read_cycles(folder / "cycles.txt.xz", zero, most)
    counts, seen = Counts(), _Seen()
    events: list[tuple[int, int, int, int, Any]] = [(at_, 3, 0, 0, cycle) for at_, cycle in cycles]
    for number, job in enumerate(case.jobs):
        events.append((job.submitted - zero, 1, number, number, "submit"))
        if job.started:
            # a cycle starts jobs in the order in which it tests them
            place = next((c[1].place(job.id) for c in reversed(cycles) if c[0] <= job.start - zero), 0)
            events.append((job.start - zero, 4 if job.by_backfill else 2, place, number, "start"))
            events.append((int(job.start + job.runtime) - zero, 0, number, number, "end"))
        elif job.end > 0:
            events.append((job.end - zero, 1, number, number, "cancel"))
    clock.begin_log(world)
    for now, _, _, number, what in sorted(events, key=lambda event: event[:3]):
        world.now = now
        allocate.release_completed(world, now)
        if what == "submit":
            clock.submit_job(world, number, now)
        elif what == "cancel":
            allocate.cancel_pending(world, number, now)
        elif what == "end":
            world.nb_killed = 0
            allocate.end_job(world, number, now)
            world.free_at[number] = now + _COMPLETING
        elif what == "start":
            _start(world, number, [hosts[host] for host in read_hosts(case.jobs[number].hosts)], now)
        else:
            _calculate(world, what, numbers, now)
            _compare(world, what, case, hosts, zero, seen, counts, now)
    return counts


class _Cycle:
    """What slurmctld's log says of a cycle."""

    def __init__(self) -> None:
        self.tests: list[tuple[str, int]] = []  # job and priority
        self.plans: dict[str, tuple[int, str]] = {}  # start, and nodes

    def place(self, job: str) -> int:
        return next((place for place, (name, _) in enumerate(self.tests) if name == job), 0)


class _Seen(list[tuple[int, int, list[int]]]):
    """The plans of the cycle that runs: job, start and nodes."""

    def __init__(self) -> None:
        super().__init__()
        plan = backfill._plan

        def noted(world: Any, entry: int, found: int, count: int, now: int) -> Any:
            nodes = sorted(int(node) for node in world.chosen[:count])
            outcome = plan(world, entry, found, count, now)
            if outcome[0] == backfill.PLANNED:
                self.append((int(world.entry_job[entry]), int(found), nodes))
            return outcome

        backfill._plan = noted


def _read_cycles(path: Path, zero: int, most: int) -> list[tuple[int, _Cycle]]:
    cycles: list[tuple[int, _Cycle]] = []
    with lzma.open(path, "rt") as file:
        for line in file:
            date, what, *words = line.split()
            if what == "cycle":
                cycles.append((read_date(date, None) - zero, _Cycle()))
            elif what == "test":
                cycles[-1][1].tests.append((words[0], int(words[1])))
            elif what == "planned":
                cycles[-1][1].plans[words[0]] = (read_date(words[1], None) - zero, words[3])
    return cycles[:most]


def _start(world: Any, number: int, nodes: list[int], now: int) -> None:
    """Start a job on the nodes that it had, with as many cores of each as the model takes of just these."""
    for i in range(world.nb_completing_jobs):
        job = world.completing[i]
        held = world.alloc_node[world.alloc_begin[job] : world.alloc_begin[job] + world.alloc_count[job]]
        if np.isin(held, nodes).any():
            world.free_at[job] = now
    allocate.release_completed(world, now)
    world.usable[:] = 0
    for node in nodes:
        bitmap.insert_interval(world.usable, node, node)
    select_nodes.begin_trial(world)
    select_nodes.measure_nodes(world, number, world.usable)
    part = world.entry_part[world.entry_begin[number]]
    if select_nodes.choose_nodes(world, number, part) != len(nodes):
        world.chosen[: len(nodes)] = nodes
        world.chosen_cores[: len(nodes)] = -(-world.cores[number] // len(nodes))
    world.nb_started = 0
    allocate.begin_on_nodes(world, number, part, len(nodes), now, at.BY_NOBODY)
    world.end[number] = at.FAR


def _calculate(world: Any, cycle: _Cycle, numbers: dict[str, int], now: int) -> None:
    """Calculate priorities at the second since the last time at which they become those of the cycle, or not at all."""
    if not cycle.tests:
        return
    priorities = np.array([priority for _, priority in cycle.tests])
    entries = [int(world.entry_begin[numbers[job]]) for job, _ in cycle.tests]
    best = np.abs(world.priority[entries] - priorities).sum(), -1
    for time in range(now - _LATE, now + 1):
        kept = _copy(world)
        priority.calculate(world, time)
        best = min(best, (np.abs(world.priority[entries] - priorities).sum(), time))
        _put_back(world, kept)
    if best[1] >= 0:
        priority.calculate(world, best[1])


def _compare(
    world: Any, cycle: _Cycle, case: Any, hosts: dict[str, int], zero: int, seen: _Seen, counts: Counts, now: int
) -> None:
    kept = _copy(world)
    world.unsorted = 1
    order = [case.jobs[world.entry_job[entry]].id for entry in world.queue[: backfill.sort_pending(world)]]
    priorities = {
        case.jobs[world.entry_job[entry]].id: int(world.priority[entry]) for entry in world.queue if entry >= 0
    }
    seen.clear()
    backfill.backfill(world, now)
    kept["found_cpus"] = world.found_cpus.copy()  # which a cycle leaves behind
    _put_back(world, kept)
    tested = [job for job, _ in cycle.tests]
    counts.cycles += 1
    counts.orders += [job for job in order if job in tested] != [job for job in tested if job in order]
    counts.tests += len(tested)
    counts.priorities += sum(priorities.get(job) != priority for job, priority in cycle.tests)
    plans = {case.jobs[number].id: (start, nodes) for number, start, nodes in seen}
    for job, (start, text) in cycle.plans.items():
        counts.plans += 1
        found = plans.get(job, (-at.FAR, []))
        if abs(found[0] - start) > 1:
            counts.starts += 1
        else:
            counts.nodes += found[1] != sorted(hosts[host] for host in read_hosts(text))


def _copy(world: Any) -> dict[str, Any]:
    return {name: np.array(part, copy=True) for name, part in world.arrays().items()}


def _put_back(world: Any, kept: dict[str, Any]) -> None:
    for name, part in world.arrays().items():
        part[...] = kept[name]


if __name__ == "__main__":
    print(msgspec.json.encode(count_cycles(Path(sys.argv[1]), int(sys.argv[2]))).decode())
