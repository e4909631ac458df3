"""Samples of real systems, record by record against a second reader that knows nothing of the first.

It splits at delimiters, reads times with `datetime`, and asks nothing of the package.
"""

import gzip
import re
import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from helpers import trace_samples

from decision.files import load_workload
from decision.files.accounting.read import TraceOptions
from decision.model.demand import runtimes, sizes, submit_times
from decision.model.trace import of_jobs
from decision.model.workload import Workload


class Row(NamedTuple):
    submit: float
    start: float
    run: float
    cores: float
    walltime: float | None
    user: str


def seconds(text: str) -> float:
    """``D-HH:MM:SS``."""
    days, _, clock = text.rpartition("-")
    hours, minutes, last = clock.split(":")
    return int(days or 0) * 86_400 + int(hours) * 3600 + int(minutes) * 60 + float(last)


def moment(text: str) -> float:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC).timestamp()


def sacct_rows(text: str, names: list[str] | None = None) -> dict[str, Row]:
    lines = text.splitlines()
    if names is None:
        names, lines = lines[0].split("|"), lines[1:]
    found = {}
    for line in lines:
        fields = dict(zip(names, re.split(r"\|", line, maxsplit=len(names) - 1), strict=True))
        if (
            fields["Start"] in ("Unknown", "None")
            or seconds(fields["Elapsed"]) == 0
            or "None ass" in fields["NodeList"]
        ):
            continue
        limit = None if fields["Timelimit"] in ("UNLIMITED", "Partition_Limit") else seconds(fields["Timelimit"])
        found[fields["JobID"]] = Row(
            moment(fields["Submit"]),
            moment(fields["Start"]),
            seconds(fields["Elapsed"]),
            int(fields["NCPUS"]),
            limit,
            fields["User"],
        )
    return found


def pbs_rows(text: str) -> dict[str, Row]:
    found = {}
    for line in text.splitlines():
        _, kind, job, said = line.split(";", 3)
        if kind == "E":
            fields = dict(part.split("=", 1) for part in said.split())
            cores = sum(
                int(slots.partition("*")[2]) if "*" in slots else int(slots[-1]) - int(slots[0]) + 1
                for slots in (host.split("/")[1] for host in fields["exec_host"].split("+"))
            )
            start, limit = float(fields["start"]), seconds(fields["Resource_List.walltime"])
            run = float(fields["end"]) - start
            found[job.split(".")[0]] = Row(float(fields["ctime"]), start, run, cores, limit, fields["user"])
    return found


def lsf_rows(text: str) -> dict[str, Row]:
    found = {}
    for line in text.splitlines():
        fields = shlex.split(line)
        submit, start, end = float(fields[7]), float(fields[10]), float(fields[2])
        hosts = fields[24 : 24 + int(fields[23])]
        cores = sum(int(host.split("*")[0]) for host in hosts)
        found[fields[3]] = Row(submit, start, end - start, cores, None, fields[11])
    return found


def sge_rows(text: str, scale: float = 1.0) -> dict[str, Row]:
    found = {}
    for line in text.splitlines()[1:]:
        fields = line.split(":")
        submit, start, end = (float(field) * scale for field in fields[8:11])
        limit = float(re.search(r"h_rt=(\d+)", fields[39])[1])
        found[fields[5]] = Row(submit, start, end - start, int(fields[34]), limit, fields[3])
    return found


def read_rows(workload: Workload) -> dict[str, Row]:
    first, wait = workload.unix_start, of_jobs(workload.trace, workload.jobs).wait
    columns = submit_times(workload) + first, submit_times(workload) + first + wait, runtimes(workload), sizes(workload)
    rows = zip(*(np.round(column, 6).tolist() for column in columns), strict=True)
    return {
        job.name: Row(*row, None if job.walltime == np.inf else job.walltime, job.user)
        for job, row in zip(workload.jobs, rows, strict=True)
    }


XDMOD = [
    *("JobID", "JobIDRaw", "Cluster", "Partition", "QOS", "Account", "Group", "GID", "User", "UID", "Submit"),
    *("Eligible", "Start", "End", "Elapsed", "ExitCode", "State", "NNodes", "NCPUS", "ReqCPUS", "ReqMem"),
    *("ReqTRES", "AllocTRES", "Timelimit", "NodeList", "JobName"),
]


def test_4285_records_of_a_cluster(shared: Path) -> None:
    path = shared / "data/traces/phillips_sacct.txt.gz"
    expected = sacct_rows(gzip.decompress(path.read_bytes()).decode(), XDMOD)
    assert len(expected) == 4024
    assert read_rows(load_workload(path, options=TraceOptions(unit="cores"))) == expected


def test_records_with_delimiters_in_names(shared: Path) -> None:
    path = shared / "data/traces/sacct_simple.log"
    found = read_rows(load_workload(path, options=TraceOptions(unit="cores")))
    lines = [re.sub(r"job_0\|*\d*\|*\d*\|$", "job|", line) for line in path.read_text().splitlines()]
    short = [line for line in lines if line.count("|") == lines[0].count("|")]
    expected = sacct_rows("\n".join(short))
    assert len(expected) >= 2
    assert {job: found[job] for job in expected} == expected


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("xdmod", sacct_rows(trace_samples.xdmod().decode(), XDMOD)),
        ("pbs", pbs_rows(trace_samples.pbs().decode())),
        ("lsf", lsf_rows(trace_samples.lsf().decode())),
        ("sge", sge_rows(trace_samples.sge().decode())),
        ("uge", sge_rows(trace_samples.sge(scale=1000).decode(), 1e-3)),
    ],
)
def test_made_samples(name: str, rows: dict[str, Row], tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(trace_samples.SAMPLES[name])
    assert len(rows) == 30
    assert read_rows(load_workload(path, options=TraceOptions(unit="cores"))) == rows


def test_a_record_of_lsf(shared: Path) -> None:
    path = shared / "data/traces/lsf_utf8-multibyte-chars.log"
    (row,) = read_rows(load_workload(path, options=TraceOptions(unit="cores"))).values()
    (expected,) = lsf_rows(path.read_text()).values()
    assert row == expected._replace(walltime=43_200.0)  # which the second reader does not look for


def test_18239_lines_of_swf(shared: Path) -> None:
    path = shared / "data/NASA-iPSC-1993-3.1-cln.swf"
    lines = [line.split() for line in path.read_text().splitlines() if line and not line.startswith(";")]
    expected = {f[0]: (float(f[1]), float(f[3]), float(f[4]), f[11]) for f in lines if float(f[3]) > 0}
    workload = load_workload(path)
    columns = (column.tolist() for column in (submit_times(workload), runtimes(workload), sizes(workload)))
    rows = zip(*columns, strict=True)
    found = {job.name: (*row, job.user) for job, row in zip(workload.jobs, rows, strict=True)}
    assert len(found) == 18_066
    assert found == expected
