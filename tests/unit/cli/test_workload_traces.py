"""The commands about logs: convert, audit, clean, outages, fetch, sacct, as a user meets them."""

import gzip
import hashlib
import json
import lzma
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from decision.cli.app import app
from decision.files import load_workload
from decision.files.accounting import known
from decision.files.accounting.read import TraceOptions
from decision.model.demand import offered_load, runtimes, submit_times
from decision.model.errors import ConfigError, InputError
from decision.model.reshape import matches

HEADER = "; MaxProcs: 10\n"


def run(*arguments: object, command: str = "workload") -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [command, *map(str, arguments)], env={"COLUMNS": "200"})
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def ask(*arguments: object) -> Any:
    code, out, err = run(*arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def line(number: int, submit: int, wait: int, time: int, size: int, asked: int = 900, user: int = 1) -> str:
    return f"{number} {submit} {wait} {time} {size} 3 70 {size} {asked} 5 1 {user} 2 4 6 7 8 9\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.swf"
    rows = [line(1, 0, 0, 100, 6), line(2, 10, 90, 50, 4), line(3, 20, 130, 50, 10, -1, 2), line(4, 30, -1, 0, 1)]
    path.write_text(HEADER + "".join(rows))
    return path


def test_an_audit_accounts_for_each_record_and_says_what_happened(log: Path) -> None:
    found = ask("audit", log)
    assert {name: found[name] for name in ("format", "records", "jobs", "joined", "hosts", "walltimes", "users")} == {
        **{"format": "swf", "records": 4, "jobs": 3, "joined": 0, "hosts": 10, "walltimes": 2, "users": 2}
    }
    assert found["left_out"] == {"no_time": {"count": 1, "lines": [5]}}
    assert found["host_seconds"] == 6 * 100 + 4 * 50 + 10 * 50
    # job 2 waits 90 s beside 4 free hosts; job 3 waits 130 s, until 100 s beside 6, then beside 4 in use
    assert found["recorded"] == {
        **{"jobs": 3, "mean_wait": 220 / 3, "max_wait": 130.0, "peak": 10, "machine": 10, "over": 0.0},
        **{"mean_bounded_slowdown": (1 + 140 / 50 + 180 / 50) / 3, "fitted": 90 / 220},
        "utilization": pytest.approx(1300 / 2000),
    }
    assert set(found["cannot"]) == {"topology", "gpus", "partitions", "dependencies", "dates"}


def test_a_log_without_waits_says_so(log: Path) -> None:
    log.write_text(HEADER + "".join(line(n, n, -1, 10, 1, -1) for n in (1, 2)))
    found = ask("audit", log)
    assert found["recorded"] is None
    assert {"recorded", "estimates", "users"} <= set(found["cannot"])


def test_convert_prints_the_same_object_and_recognises_content_by_whatever_name(log: Path, tmp_path: Path) -> None:
    misnamed = tmp_path / "log.json"
    misnamed.write_bytes(log.read_bytes())
    assert ask("convert", misnamed, "-o", tmp_path / "out.json") == ask("audit", log)
    for packed, content in (("a.xz", lzma.compress(log.read_bytes())), ("b", gzip.compress(log.read_bytes()))):
        (tmp_path / packed).write_bytes(content)
        assert ask("audit", tmp_path / packed)["jobs"] == 3


def test_all_18_fields_come_back_from_json(log: Path, tmp_path: Path) -> None:
    wide = line(5, 40, 7, 20, 3).strip() + " 1,2 q n:ppn\n"
    log.write_text(log.read_text() + wide + "6 50 -1 20 3 -1 -1 0 0 -1 5 -1 -1 -1 -1 -1 -1 -1\n")
    assert run("convert", log, "-o", tmp_path / "a.json")[0] == 0
    assert run("to-swf", tmp_path / "a.json", "-o", tmp_path / "b.swf")[0] == 0
    given = [row.split() for row in log.read_text().splitlines()[1:] if row.split()[3] != "0"]
    found = [row.split() for row in (tmp_path / "b.swf").read_text().splitlines() if not row.startswith(";")]
    assert found == given
    job = json.loads((tmp_path / "a.json").read_text())["jobs"][1]
    assert job["recorded"] == {"start": 100, "size": 4, "cpu_time": 3, "memory": 70, "state": "COMPLETED"}
    assert job["request"]["partition"] == "7"


def test_what_was_recorded_reaches_no_file_of_batsims_and_no_source(log: Path, tmp_path: Path) -> None:
    from decision.experiments.inputs import Inputs, load_inputs, workload_files

    run("convert", log, "-o", tmp_path / "a.json")
    platform = tmp_path / "p.xml"
    assert run("flat", "--hosts", 10, "-o", platform, command="platform")[0] == 0
    case = load_inputs(Inputs(platform=platform, workloads=(tmp_path / "a.json",)))
    assert all(b"record" not in (job.source or b"") and job.extra is None for job in case.workloads[0].jobs)
    (tmp_path / "given").mkdir()
    for file in workload_files(case, tmp_path / "given", "4"):
        text = file.read_text()
        assert "recorded" not in text
        assert "request" not in text
        assert [job["group"] for job in json.loads(text)["jobs"]] == ["2", "2", "2"]  # what Batsim forwards stays


@pytest.mark.parametrize(("missing", "limits"), [("none", [900, 900, None]), ("runtime", [900, 900, 50])])
def test_what_takes_the_place_of_missing_walltimes_is_said(
    log: Path, tmp_path: Path, missing: str, limits: list[Any]
) -> None:
    _, _, said = run("convert", log, "-o", tmp_path / "a.json", "--missing-walltime", missing)
    assert "1 of 3 jobs (33 %) have no requested time" in said
    assert [job.get("walltime") for job in json.loads((tmp_path / "a.json").read_text())["jobs"]] == limits


def test_a_filter_of_the_archive_removes_jobs_and_the_header_says_so(log: Path, tmp_path: Path) -> None:
    workload = load_workload(log)
    for text, jobs in {
        "user=1 and (job>=2 and job<=564)": [2],
        "user=2 or proc=6": [1, 3],
        "not submit<=10": [3],
        "status=1 and app=4 and queue=6 and part=7": [1, 2, 3],
    }.items():
        assert [int(workload.jobs[row].name) for row in np.flatnonzero(matches(workload, text))] == jobs
    for text in ("user=", "user~1", "size=1", "user=1 and", "(user=1", "user=1 user=2"):
        with pytest.raises(ConfigError, match=r"^filter "):
            matches(workload, text)
    assert run("clean", log, "--filter", "user=2", "-o", tmp_path / "clean.swf")[0] == 0
    written = (tmp_path / "clean.swf").read_text()
    assert "; Note: THIS IS A CLEANED VERSION OF THE LOG!" in written
    assert "; Note: The filter used to produce it was user=2 (1 jobs removed)" in written
    assert len([row for row in written.splitlines() if not row.startswith(";")]) == 2


def test_a_flurry_is_found_and_nothing_is_changed(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    rows = [line(n, 5000 * n, 0, 60, 2, user=n % 7 + 2) for n in range(1, 300)]
    rows += [line(1000 + n, 900_000 + 60 * n, 0, 30, 1, user=1) for n in range(600)]
    path.write_text(HEADER + "".join(rows))
    (flurry,) = ask("clean", path)["flurries"]
    assert {name: flurry[name] for name in ("user", "first", "last", "jobs")} == {
        **{"user": "1", "first": "1000", "last": "1599", "jobs": 600}
    }
    assert flurry["hours"] == pytest.approx(599 / 60)
    assert flurry["share_of_jobs"] == pytest.approx(600 / 899)
    assert flurry["share_of_host_seconds"] == pytest.approx(600 * 30 / (600 * 30 + 299 * 120))


def test_an_outage_is_proposed_as_events(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    rows = [line(n, 500 * n, 0, 1000, 2, 9000) for n in range(40)]
    rows += [line(50 + n, 21_000, 9_000 + n, 1000, 2, 9000) for n in range(3)]
    path.write_text(HEADER + "".join(rows))
    found = ask("outages", path, "-o", tmp_path / "events.txt")
    (outage,) = found["outages"]
    assert (outage["begin"], outage["end"]) == (20_500.0, 30_000.0)
    assert found["fitted"] == pytest.approx(1.0)
    assert found["fitted_with_outages"] < 0.01
    events = [json.loads(row) for row in (tmp_path / "events.txt").read_text().splitlines()]
    assert [(event["type"], event["timestamp"]) for event in events] == [
        ("machine_unavailable", 20_500.0),
        ("machine_available", 30_000.0),
    ]


def test_users_are_drawn_by_whole_weeks_and_sizes_scaled(tmp_path: Path) -> None:
    path, week = tmp_path / "log.swf", 604_800
    rows = [line(n, (n * 7919) % (4 * week), 0, 3000, 1 + n % 4, 9000, 1 + n % 60) for n in range(1, 1200)]
    path.write_text(HEADER + "".join(rows))
    run("convert", path, "-o", tmp_path / "a.json", "--load", 0.15, "--by", "users", "--seed", 3)
    before, after = load_workload(path), load_workload(tmp_path / "a.json")
    assert offered_load(after, runtimes(after)) == pytest.approx(0.15, rel=0.05)
    first = float(submit_times(before).min())
    for user in map(str, range(1, 61)):
        own, moved = (
            sorted({round((j.submit_time - first) % week) for j in w.jobs if j.user == user}) for w in (before, after)
        )
        assert not moved or moved == own
    run("convert", path, "-o", tmp_path / "b.json", "--scale-sizes", 5)
    scaled = load_workload(tmp_path / "b.json")
    assert scaled.nb_res == 5
    assert [job.size for job in scaled.jobs] == [max(1, math.floor(job.size / 2 + 0.5)) for job in before.jobs]


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a log that is known."""
    folder, content = tmp_path / "mirror", HEADER.encode() + line(1, 0, 0, 10, 1).encode()
    folder.mkdir()
    (folder / "TOY-1.swf.gz").write_bytes(gzip.compress(content))
    toy = known.KnownLog("TOY-1", "l_toy", hashlib.sha256(content).hexdigest(), True, 1, 1, 10, 1, 0.5, "tiny")
    monkeypatch.setitem(known.KNOWN_LOGS, "TOY-1", toy)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def test_a_log_is_fetched_by_name_checked_and_kept(mirror: Path, tmp_path: Path) -> None:
    assert len(ask("fetch", "--list")) >= 12
    assert ask("fetch", "TOY-1", "--from", mirror, "-o", tmp_path / "toy.swf")["jobs"] == 1
    assert load_workload(tmp_path / "toy.swf").nb_res == 10
    (mirror / "TOY-1.swf.gz").unlink()
    code, out, _ = run("fetch", "TOY-1")  # from the cache
    assert (code, (tmp_path / "cache/decision/logs/TOY-1.swf").is_file()) == (0, True), out


def test_a_log_with_another_checksum_is_refused_and_not_kept(mirror: Path, tmp_path: Path) -> None:
    (mirror / "TOY-1.swf.gz").write_bytes(gzip.compress(b"; another\n"))
    code, _, err = run("fetch", "TOY-1", "--from", mirror, "-o", tmp_path / "toy.swf")
    assert (code, err.count("\n"), err.count("SHA-256")) == (2, 1, 1)
    assert known.KNOWN_LOGS["TOY-1"].sha256 in err
    assert not (tmp_path / "toy.swf").exists()
    assert not (tmp_path / "cache").exists()


def test_a_file_with_a_known_name_and_another_content_is_warned_of(mirror: Path, log: Path, tmp_path: Path) -> None:
    odd = tmp_path / "TOY-1.swf"
    odd.write_bytes(log.read_bytes())
    (note,) = ask("audit", odd)["notes"]
    assert "warning: it has the name of TOY-1, but another content: 3 jobs here, where there are 1 usable jobs" in note


TABLE = (
    "when,waited,took,cores_used,who\n2020-01-01T10:00:00,60,100,4,ann\n2020-01-01T10:01:00,0,50,2,bob\n,0,50,2,bob\n"
)


def test_a_table_is_read_by_a_mapping_or_refused_with_one_to_fill_in(tmp_path: Path) -> None:
    table, mapping = tmp_path / "jobs.csv", tmp_path / "mine.toml"
    table.write_text(TABLE)
    with pytest.raises(InputError, match="a table of unknown columns: when, waited, took, cores_used, who"):
        load_workload(table)
    mapping.write_text(
        'submit = "when"\nwait = "waited"\nrun = "took"\nsize = "cores_used"\nunit = "cores"\n'
        'user = "who"\ntimes = "iso"\n'
    )
    found = ask("audit", table, "--columns", mapping)
    assert (found["format"], found["records"], found["jobs"], found["unit"]) == ("csv", 3, 2, "cores")
    assert found["left_out"] == {"no_time": {"count": 1, "lines": [4]}}
    assert found["recorded"]["mean_wait"] == 30


def test_parquet_has_the_columns_of_known_data_sets(tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    start = 1_600_000_000
    columns = {
        **{
            "jid": [1, 2],
            "usr": ["a", "b"],
            "nnumr": [3, 4],
            "elpl": [600, 900],
            "exit state": ["completed", "failed"],
        },
        **{
            name: pyarrow.array([start + at, start + at + 60], pyarrow.timestamp("s", "Asia/Tokyo"))
            for name, at in (("adt", 0), ("sdt", 30), ("edt", 130))
        },
    }
    parquet.write_table(pyarrow.table(columns), tmp_path / "jobs")
    workload = load_workload(tmp_path / "jobs")
    assert workload.reading is not None
    assert (workload.reading.format, workload.unix_start) == ("f-data", start)
    assert [(job.name, job.size, job.walltime) for job in workload.jobs] == [("1", 3, 600.0), ("2", 4, 900.0)]
    assert runtimes(workload).tolist() == [100.0, 100.0]


@pytest.mark.parametrize("hashed", [False, True])
def test_the_command_for_slurm_asks_for_utc_and_what_is_read(hashed: bool) -> None:
    code, out, _ = run("sacct", *["--hashed"] * hashed)
    assert code == 0
    for part in ("TZ=UTC", "--duplicates", "--allocations", r"--delimiter=$'\x1f'", "JobID,JobIDRaw,Submit"):
        assert part in out
    assert ("sha256sum" in out) == hashed


def test_het_jobs_are_joined_attempts_are_jobs_and_times_have_a_zone(tmp_path: Path) -> None:
    rows = [
        "JobID|Submit|Start|End|Elapsed|State|NNodes|NCPUS|NodeList",
        "5+0|2021-07-01T10:00:00|2021-07-01T10:01:00|2021-07-01T10:02:00|00:01:00|COMPLETED|1|4|n1",
        "5+1|2021-07-01T10:00:00|2021-07-01T10:01:00|2021-07-01T10:03:00|00:02:00|COMPLETED|2|8|n[2-3]",
        "6|2021-07-01T10:00:00|2021-07-01T10:05:00|2021-07-01T10:06:00|00:01:00|NODE_FAIL|1|4|n1",
        "6|2021-07-01T10:06:00|2021-07-01T10:07:00|2021-07-01T10:08:00|00:01:00|COMPLETED|1|4|n1",
        "6|2021-07-01T10:06:00|2021-07-01T10:07:00|2021-07-01T10:08:00|00:01:00|COMPLETED|1|4|n1",
    ]
    (tmp_path / "s").write_text("\n".join(rows) + "\n")
    found = ask("audit", tmp_path / "s", "--time-zone", "Europe/Berlin")
    assert (found["records"], found["jobs"], found["joined"]) == (5, 3, 1)
    assert found["left_out"] == {"repeat": {"count": 1, "lines": [6]}}
    workload = load_workload(tmp_path / "s", options=TraceOptions(time_zone="Europe/Berlin"))
    assert [(job.name, job.size) for job in workload.jobs] == [("5", 3), ("6", 1), ("6-2", 1)]
    assert workload.unix_start == 1_625_126_400  # 8:00 UTC
    assert ask("audit", tmp_path / "s", "--unit", "cores")["host_seconds"] == 12 * 120 + 4 * 60 + 4 * 60
