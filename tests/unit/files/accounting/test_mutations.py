"""Broken logs of every format: one clear line or fewer jobs, never a traceback, and no other job is changed."""

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from helpers.trace_samples import FORMATS, LINES, SAMPLES

from decision.experiments.audit import audit
from decision.files import load_workload
from decision.files.accounting.read import TraceOptions, recognise
from decision.model.demand import runtimes, sizes, submit_times
from decision.model.errors import DecisionError
from decision.model.trace import of_jobs
from decision.model.workload import Workload

Mutation = Callable[[bytes, random.Random], bytes]
_NASTY = (b"|", b";", b",", b":", b" ", b"\t", b'"', b"\n", b"-", b"\xff", b"\0", b"1e400", b"nan", b"-1", b"9" * 20)


def inject(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(_NASTY) + data[at:]


def replace_byte(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]


def cut_out(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + data[at + rng.randrange(1, 200) :]


def repeat(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[: at + rng.randrange(1, 300)] + data[at:]


def truncate(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


MUTATIONS: tuple[Mutation, ...] = (inject, inject, replace_byte, cut_out, repeat, truncate)


def mutate(name: str, path: Path, times: int) -> None:
    rng = random.Random(name)
    for number in range(times):
        data = rng.choice(MUTATIONS)(SAMPLES[name], rng)
        path.write_bytes(data)
        format = FORMATS.get(name, name) if name != "djc" and number % 2 else None
        try:
            found = audit(load_workload(path, options=TraceOptions(format=format)))
        except DecisionError as error:
            assert str(error).startswith(str(path)), (number, str(error))
            continue
        left = sum(entry.count for entry in found.left_out.values())
        assert found.records == found.jobs + left + found.joined, number


@pytest.mark.parametrize("name", SAMPLES)
def test_a_broken_log_is_read_or_refused_in_one_line(name: str, tmp_path: Path) -> None:
    mutate(name, tmp_path / "log", 60)


@pytest.mark.nightly
@pytest.mark.parametrize("name", SAMPLES)
def test_a_thousand_broken_logs(name: str, tmp_path: Path) -> None:
    mutate(name, tmp_path / "log", 1000)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_recognised_and_read_whole(name: str, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(SAMPLES[name])
    assert recognise(path) == {"djc": "csv", "oar": "csv"}.get(name, FORMATS.get(name, name))
    workload = load_workload(path)
    assert len(workload.jobs) == 30
    assert (runtimes(workload) == 100 + np.arange(1, 31)).all()
    assert (submit_times(workload) - submit_times(workload)[0] == 60 * np.arange(30)).all()
    assert (workload.trace.wait == 30).all()


def facts(workload: Workload) -> dict[str, tuple[object, ...]]:
    """What is known of each job, at times since 1970 where these are known."""
    first = workload.unix_start or 0.0
    wait = of_jobs(workload.trace, workload.jobs).wait
    columns = (submit_times(workload) + first, runtimes(workload), sizes(workload), wait)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return {job.name: (*row, job.walltime, job.user) for job, row in zip(workload.jobs, rows, strict=True)}


@pytest.mark.parametrize("name", LINES)
def test_a_delimiter_too_many_changes_no_other_job(name: str, tmp_path: Path) -> None:
    path, rng = tmp_path / "log", random.Random(name)
    delimiter = {"swf-21": " ", "swf-semicolons": ";", "gwf": "\t", "pbs": ";", "uge": ":", "sge": ":"}.get(name)
    delimiter = delimiter or {"oar": ",", "djc": ","}.get(name, "|" if FORMATS.get(name, name) == "sacct" else " ")
    path.write_bytes(LINES[name])
    options = TraceOptions(format=None if name == "djc" else FORMATS.get(name, name), unit="auto")
    before = facts(load_workload(path, options=options))
    lines = LINES[name].decode().splitlines()
    for _ in range(30):
        at = rng.randrange(len(lines) - 28, len(lines))
        place = rng.randrange(len(lines[at]) + 1)
        changed = [*lines[:at], lines[at][:place] + delimiter + lines[at][place:], *lines[at + 1 :]]
        path.write_text("\n".join(changed) + "\n")
        try:
            after = facts(load_workload(path, options=options))
        except DecisionError as error:
            assert str(error).startswith(str(path))
            continue
        others = {job for job, row in before.items() if after.get(job) == row}
        assert len(others) >= len(before) - 1, lines[at]
