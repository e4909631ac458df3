"""Each recorded cycle of backfill, simulated from the state that was recorded: what it tests and plans.

Nothing is guessed but how long nodes complete: the starts are those of the log, and priorities are calculated when
those of the log say that they were. A program, which runs without compiling: ``NUMBA_DISABLE_JIT=1 python
tests/helpers/slurm_cycles.py FOLDER CYCLES`` prints the counts as JSON.
"""

import lzma
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from decision.slurm.build import build_world, zero_of
from decision.slurm.case import Sources, read_case
from decision.slurm.jobs import read_job
from decision.slurm.kernels import allocate, backfill, clock, main_loop, preemption, priority, select_nodes
from decision.slurm.kernels import world as at
from decision.slurm.records import read_rows
from decision.slurm.text import read_date, read_hosts
from decision.state import bitmap

_COMPLETING = 3  # seconds
SHOW = bool(os.environ.get("SHOW"))
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
    # an instruction of compiled code
    bitmap.count_ones = backfill.count_ones = lambda word: int(word).bit_count()  # type: ignore[assignment]
    files = {name: folder / f"{name}.txt" for name in ("config", "assoc", "qos")} | {
        "topology": folder / "topology.yaml"
    }
    files = {name: path for name, path in files.items() if path.is_file()}
    case, conf = read_case(Sources(conf=folder / "slurm.conf", jobs=folder / "sacct.txt", **files))
    case.__dict__["conf"] = conf
    world, zero = build_world(case, case.settings, [0]), zero_of(case)
    hosts = {node.name: number for number, node in enumerate(case.nodes)}
    cycles = _read_cycles(folder / "cycles.txt.xz", zero, most)
    counts, seen = Counts(), _Seen()
    events = _events(case, folder / "sacct.txt", zero, cycles) + [(at_, 3, 0, 0, cycle) for at_, cycle in cycles]
    clock.begin_log(world)
    for now, _, _, number, what in sorted(events, key=lambda event: event[:3]):
        world.now = now
        allocate.release_completed(world, now)
        if what == "submit":
            clock.submit_job(world, number, now)
        elif what == "cancel":
            allocate.cancel_pending(world, number, now)
        elif isinstance(what, _Ended):
            world.nb_killed = 0
            allocate.end_job(world, number, now)
            world.free_at[number] = what.back
            # the log does not say who preempted it: any that may
            for entry in world.pending[: world.nb_pending] if what.preempted else ():
                mine, other = world.quality[number], world.entry_quality[entry]
                if min(mine, other) >= 0 and world.quality_preempts[other, mine]:
                    world.preempting_until[world.entry_job[entry]] = now + world.preempt_pause
        elif isinstance(what, _Again):
            preemption.requeue(world, number, now)
            world.begin[number] = what.begin
        elif isinstance(what, _Begun):
            quality = next((k for k, each in enumerate(case.qualities) if each.name == what.qos), -1)
            _start(world, number, [hosts[host] for host in read_hosts(what.hosts)], quality, now)
        else:
            _calculate(world, what, case, now)
            _compare(world, what, case, hosts, seen, counts, now)
    return counts


class _Ended(NamedTuple):
    """A job ends."""

    back: int  # seconds: when its nodes are free
    preempted: bool


class _Again(NamedTuple):
    """A requeued job waits again."""

    begin: int  # seconds: not before


class _Begun(NamedTuple):
    """A job starts."""

    hosts: str
    qos: str  # in which it runs


def _events(
    case: Any, log: Path, zero: int, cycles: list[tuple[int, "_Cycle"]]
) -> list[tuple[int, int, int, int, Any]]:
    """What happens to jobs: when, its place among what happens then, and the job's number."""
    numbers = {job.id: number for number, job in enumerate(case.jobs)}
    runs: dict[int, list[tuple[Any, str, int]]] = {}
    for row in read_rows(log):
        if (name := row.text("JobIDRaw", "JobID")) in numbers:
            attempt = read_job(row, name, None), row.text("QOS"), row.date("Eligible", None)
            runs.setdefault(numbers[name], []).append(attempt)
    events: list[tuple[int, int, int, int, Any]] = []
    for number, attempts in runs.items():
        attempts.sort(key=lambda attempt: (attempt[0].submit, attempt[0].end))
        for i, (job, qos, eligible) in enumerate(attempts):
            if i == 0:
                events.append((job.submit - zero, 1, number, number, "submit"))
            else:
                again = _Again(eligible - zero)
                events.append((job.submit - zero, 1, number, number, again))
            if job.started:
                end = int(job.start + job.runtime) - zero
                # a cycle starts jobs in the order in which it tests them, a main loop as the log says
                cycle = next((cycle for time, cycle in reversed(cycles) if time <= job.start - zero), _Cycle())
                tests = [name for name, _ in cycle.tests] if job.by_backfill else cycle.main
                place = next((k for k, name in enumerate(tests) if name in (job.id, f"{job.array}_*")), 0)
                kind = 4 if job.by_backfill else 2
                events.append((job.start - zero, kind, place, number, _Begun(job.hosts, qos)))
                # a job is requeued when its nodes are free
                back = attempts[i + 1][0].submit - zero if i + 1 < len(attempts) else end + _COMPLETING
                preempted = job.state == "PREEMPTED"  # maybe by a cycle of this second
                events.append((end, 5 if preempted else 0, number, number, _Ended(back, preempted)))
            elif job.end > 0:
                events.append((job.end - zero, 1, number, number, "cancel"))
    return events


class _Cycle:
    """What slurmctld's log says of a cycle."""

    def __init__(self) -> None:
        self.tests: list[tuple[str, int]] = []  # job and priority
        self.main: list[str] = []  # what main loops start until the next one
        self.plans: dict[str, list[tuple[int, str]]] = {}  # start and nodes of each, one after the other


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
                cycles[-1][1].tests.append((_id_of(words[0]), int(words[1])))
            elif what == "main" and cycles:
                cycles[-1][1].main.append(_id_of(words[0]))
            elif what == "planned":
                plans = cycles[-1][1].plans.setdefault(_id_of(words[0]), [])
                plans.append((read_date(words[1], None) - zero, words[3]))
    return cycles[:most]


def _id_of(shown: str) -> str:
    """The id of 7 and of a task 5_2(7) that has run; of all that have not, 5_*."""
    return shown.partition("(")[2].rstrip(")") or shown


def _name_of(case: Any, world: Any, number: int) -> str:
    """A job as the log calls it."""
    job = case.jobs[number]
    return f"{job.array}_*" if job.array and world.first_start[number] < 0 else job.id


def _start(world: Any, number: int, nodes: list[int], quality: int, now: int) -> None:
    """Start a job on the nodes that it had, with as many cores of each as the model takes of just these."""
    # a node that another job gets is free, whatever else its last one held
    for job in world.completing[: world.nb_completing_jobs]:
        first, kept = world.alloc_begin[job], 0
        for k in range(first, first + world.alloc_count[job]):
            node, cores = world.alloc_node[k], world.alloc_cores[k]
            if node in nodes:
                allocate.hold(world, job, node, cores, -1)
                world.nb_jobs[node] -= 1
                world.nb_completing[node] -= 1
            else:
                world.alloc_node[first + kept], world.alloc_cores[first + kept] = node, cores
                kept += 1
        world.alloc_count[job] = kept
    entries = range(world.entry_begin[number], world.entry_begin[number + 1])
    entry = next((each for each in entries if world.entry_quality[each] == quality), entries[0])
    allocate.take_entry(world, entry)
    allocate.has_licences(world, number)  # which says which ones it gets
    part = world.entry_part[entry]
    select_nodes.begin_trial(world)
    # of all free nodes the model may choose just these, else it has to; that says how many cores of each
    main_loop.set_free(world, False)
    world.usable[:] = world.masks[world.entry_mask[entry]] & world.free_now
    select_nodes.measure_nodes(world, number, world.usable)
    found = select_nodes.choose_nodes(world, number, part)
    if sorted(world.chosen[: max(0, found)]) != sorted(nodes):
        world.usable[:] = 0
        for node in nodes:
            bitmap.insert_interval(world.usable, node, node)
        select_nodes.measure_nodes(world, number, world.usable)
        found = select_nodes.choose_nodes(world, number, part)
    if found != len(nodes):
        world.chosen[: len(nodes)] = nodes
        world.chosen_cores[: len(nodes)] = -(-world.cores[number] // len(nodes))
    world.nb_started = 0
    allocate.begin_on_nodes(world, number, part, len(nodes), now, at.BY_NOBODY)
    world.end[number] = at.FAR


def _calculate(world: Any, cycle: _Cycle, case: Any, now: int) -> None:
    """Calculate priorities at the second since the last time at which they become those of the cycle, or not at all."""
    entries: dict[str, list[int]] = {}
    for entry in world.pending[: world.nb_pending]:
        name = _name_of(case, world, world.entry_job[entry])
        entries[name] = [entry] if name.endswith("*") else [*entries.get(name, []), entry]
    # of a job of several QOS a line does not say which one it is about
    tests = [(entries[name][0], each) for name, each in cycle.tests if len(entries.get(name, ())) == 1]
    if not tests:
        return
    at_, priorities = np.array([entry for entry, _ in tests]), np.array([priority for _, priority in tests])
    best = np.abs(world.priority[at_] - priorities).sum(), -1
    for time in range(now - _LATE, now + 1):
        kept = _copy(world)
        priority.calculate(world, time)
        best = min(best, (np.abs(world.priority[at_] - priorities).sum(), time))
        _put_back(world, kept)
    if best[1] >= 0:
        priority.calculate(world, best[1])


def _compare(
    world: Any, cycle: _Cycle, case: Any, hosts: dict[str, int], seen: _Seen, counts: Counts, now: int
) -> None:
    kept = _copy(world)
    world.placed_by[:] = world.entry_begin[1:] - 1  # a main loop has looked at all of a job's QOS
    world.unsorted = 1
    entries = world.queue[: backfill.sort_pending(world)]
    names = [_name_of(case, world, world.entry_job[entry]) for entry in entries]
    priorities: dict[str, set[int]] = {}
    for name, entry in zip(names, entries, strict=True):
        priorities.setdefault(name, set()).add(int(world.priority[entry]))
    order = list(dict.fromkeys(names))
    # where usages are nearly equal, a second decides whose share counts: cycles plan by the priorities of the log
    recorded = dict(cycle.tests)
    for name, entry in zip(names, entries, strict=True):
        if name in recorded and len(priorities[name]) == 1:
            world.priority[entry] = recorded[name]
    world.unsorted = 1
    seen.clear()
    backfill.backfill(world, now)
    kept["found_cpus"] = world.found_cpus.copy()  # which a cycle leaves behind
    _put_back(world, kept)
    tested = list(dict.fromkeys(job for job, _ in cycle.tests))
    counts.cycles += 1
    counts.orders += [job for job in order if job in tested] != [job for job in tested if job in order]
    counts.tests += len(cycle.tests)
    counts.priorities += sum(each not in priorities.get(job, ()) for job, each in cycle.tests)
    plans: dict[str, list[tuple[int, list[int]]]] = {}
    for number, start, nodes in seen:
        plans.setdefault(_name_of(case, world, number), []).append((start, nodes))
    for job, recorded in cycle.plans.items():
        for i, (start, text) in enumerate(recorded):
            counts.plans += 1
            found = plans.get(job, [])[i : i + 1]
            wanted = sorted(hosts[host] for host in read_hosts(text))
            if not found or abs(found[0][0] - start) > 1:
                counts.starts += 1
            else:
                counts.nodes += found[0][1] != wanted
            if SHOW and (not found or abs(found[0][0] - start) > 1 or found[0][1] != wanted):
                print(now, job, start - now, wanted, [(a - now, b) for a, b in found], file=sys.stderr)


def _copy(world: Any) -> dict[str, Any]:
    return {name: np.array(part, copy=True) for name, part in world.arrays().items()}


def _put_back(world: Any, kept: dict[str, Any]) -> None:
    for name, part in world.arrays().items():
        part[...] = kept[name]


if __name__ == "__main__":
    print(msgspec.json.encode(count_cycles(Path(sys.argv[1]), int(sys.argv[2]))).decode())
