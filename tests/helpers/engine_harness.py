"""Holds an engine to a recorded session of Batsim: the same questions, in the same order, at the same times, and the
same output files.

An engine is any class with the interface of `decision.engine.reference.engine.ReferenceEngine`.
"""

import csv
import json
import math
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from decision.engine.rules import EngineOptions
from decision.files import load_events, load_platform, load_workload, write_run
from decision.model.record import RunRecord
from decision.protocol import JsonCodec, Role, read_recording

NOT_SIMULATED = {
    "batsim_version",
    "scheduling_time",
    "simulation_time",
}  # columns of the program and of wall-clock time
PRECISION = 1e-6  # Batsim writes six decimals


@dataclass
class Replay:
    """What a replay found."""

    differences: list[str] = field(default_factory=list)  # at most one: what follows is only its consequence
    largest_delay: float = 0.0  # seconds that an event of Batsim's came after the engine's
    questions: int = 0


def build_engine(engine_class: type, folder: Path) -> Any:
    """An engine for the scenario in `folder`, with the options in its ``command.txt``."""
    words = shlex.split((folder / "command.txt").read_text())
    workloads = [
        msgspec.structs.replace(load_workload(folder / file, f"w{number}", keep_source=True), path=file)
        for number, file in enumerate(_values(words, "-w"))
    ]
    events = [event for file in _values(words, "--events") for event in load_events(folder / file)]
    options = EngineOptions(
        energy="-E" in words,
        dynamic_jobs="--enable-dynamic-jobs" in words,
        acknowledge_dynamic_jobs="--acknowledge-dynamic-jobs" in words,
        compute_sharing="--enable-compute-sharing" in words,
        forward_profiles="--forward-profiles-on-submission" in words,
        sched_config="".join(_values(words, "--sched-cfg")),
    )
    return engine_class(load_platform(folder / "platform.xml"), workloads, events, options)


def _values(words: list[str], option: str) -> list[str]:
    return [words[at + 1] for at, word in enumerate(words) if word == option]


# --- Messages ------------------------------------------------------------------------------------------------


def replay(engine: Any, lines: Iterable[str], slack: float = PRECISION) -> Replay:
    """Give an engine the recorded decisions and compare its questions with Batsim's.

    Args:
        engine: has not been asked yet.
        lines: the recording.
        slack: seconds that times may differ by.
    """
    entries = list(read_recording(lines))
    recorded = [json.loads(entry.data) for entry in entries if entry.sender is Role.BATSIM]
    replies = [JsonCodec().decode(entry.data) for entry in entries if entry.sender is Role.DECISION]
    result = Replay()
    for wanted, reply in zip(recorded, replies, strict=True):
        question = engine.ask()
        found = json.loads(JsonCodec().encode(question)) if question else {"now": math.nan, "events": []}
        differences = question_differences(wanted, found, slack)
        if differences:
            result.differences = [f"question {result.questions}: {differences[0]}"]
            return result
        pairs = zip(wanted["events"], found["events"], strict=True)
        delays = [a["timestamp"] - b["timestamp"] for a, b in pairs]
        result.largest_delay = max([result.largest_delay, *map(abs, delays)])
        result.questions += 1
        engine.answer(reply)
    if engine.ask() is not None:
        result.differences = ["the engine goes on after Batsim's end"]
    return result


def question_differences(wanted: dict[str, Any], found: dict[str, Any], slack: float) -> list[str]:
    """How two questions differ: grouping and order first, then times, then data."""
    kinds = [[event["type"] for event in message["events"]] for message in (wanted, found)]
    if kinds[0] != kinds[1]:
        return [f"Batsim tells at {wanted['now']} of {kinds[0]}, the engine at {found['now']} of {kinds[1]}"]
    times = [[message["now"], *(event["timestamp"] for event in message["events"])] for message in (wanted, found)]
    late = [f"times {times[0]}, found {times[1]}"] if not _close(times[0], times[1], slack, 0.0) else []
    pairs = zip(wanted["events"], found["events"], strict=True)
    return late + [
        f"{a['type']} at {a['timestamp']}: Batsim says {a['data']}, the engine {b['data']}"
        for a, b in pairs
        if not _close(a["data"], b["data"], slack, PRECISION)
    ]


def _close(wanted: Any, found: Any, absolute: float, relative: float) -> bool:
    """Whether two JSON values are equal, numbers up to a tolerance."""
    match wanted, found:
        case dict(), dict():
            same = wanted.keys() == found.keys()
            return same and all(_close(wanted[key], found[key], absolute, relative) for key in wanted)
        case list(), list():
            same = len(wanted) == len(found)
            return same and all(_close(a, b, absolute, relative) for a, b in zip(wanted, found, strict=True))
        case ((int() | float()), (int() | float())) if not isinstance(wanted, bool):
            return math.isclose(wanted, found, rel_tol=relative, abs_tol=absolute * (1 + 1e-9) + 1e-12)
    return bool(wanted == found)


# --- Files ---------------------------------------------------------------------------------------------------


def compare_outputs(
    record: RunRecord, folder: Path, scratch: Path, slack: float = PRECISION, brief: float = PRECISION
) -> list[str]:
    """Write a run's files into `scratch` and compare them with those that Batsim left in `folder`.

    `slack` is what seconds may differ by, and `brief` by how much, relatively, a mean power may between two rows of one
    printed time: of nanoseconds, in which the last bits of two sums show.

    Returns the first difference of each file, in every column but those of `NOT_SIMULATED`.
    """
    written = {path.name for path in write_run(scratch / "out", record)}
    recorded = {path.name for path in folder.glob("out_*.csv")}
    missing = [f"{name}: only one of Batsim and the engine writes it" for name in sorted(written ^ recorded)]
    found = [_compare_file(folder / name, scratch / name, slack, brief) for name in sorted(written & recorded)]
    return missing + [difference for difference in found if difference]


def _compare_file(wanted: Path, found: Path, slack: float, brief: float) -> str:
    a, b = (list(csv.reader(path.open())) for path in (wanted, found))
    if a[0] != b[0] or len(a) != len(b):
        return f"{wanted.name}: {len(a)} lines with columns {a[0]}, found {len(b)} with {b[0]}"
    for number, (row, other) in enumerate(zip(a, b, strict=True), 1):
        at_once = number > 1 and row[0] == a[number - 2][0]
        for name, cell, mine in zip(a[0], row, other, strict=True):
            relative = brief if name == "epower" and at_once else max(slack, PRECISION)
            if name not in NOT_SIMULATED and not _same_cell(cell, mine, slack, relative):
                return f"{wanted.name} line {number}, {name}: {cell!r}, found {mine!r}"
    return ""


def _same_cell(wanted: str, found: str, slack: float, relative: float) -> bool:
    try:
        a, b = float(wanted), float(found)
    except ValueError:
        return wanted == found
    return _close(a, b, slack, relative) or (math.isnan(a) and math.isnan(b))  # the means of no jobs
