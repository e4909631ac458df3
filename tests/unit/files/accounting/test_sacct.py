"""sacct's records: which become jobs, and how lines with a delimiter too many are read."""

import gzip
import random
from pathlib import Path

import pytest

from decision.files.accounting import Account, Clock, Records, read_sacct
from decision.model.errors import InputError

HEADER = "JobID|User|Account|JobName|Submit|Start|End|Elapsed|State|NNodes|NCPUS|Timelimit|SubmitLine|NodeList"
TIMES = "2021-12-10T14:23:28|2021-12-10T14:24:28|2021-12-10T14:34:28"


def record(job: str = "1", **fields: str) -> str:
    values = {
        **{"id": job, "user": "ann", "account": "physics", "name": "job", "times": TIMES, "elapsed": "00:10:00"},
        **{"state": "COMPLETED", "nodes": "2", "cores": "8", "limit": "01:00:00", "line": "sbatch x", "list": "n[1-2]"},
        **fields,
    }
    return "|".join(values.values())


def read(tmp_path: Path, *lines: str, zone: str | None = None) -> tuple[Records, Account]:
    path = tmp_path / "sacct.txt"
    path.write_text("\n".join(lines) + "\n")
    records, account = Records(), Account()
    for columns in read_sacct(path, account, Clock(zone)):
        records.add(columns)
    return records, account


def left_out(account: Account) -> dict[str, list[int]]:
    return {reason: entry.lines for reason, entry in account.left_out.items()}


def test_a_record_becomes_columns(tmp_path: Path) -> None:
    records, account = read(tmp_path, HEADER, record("7_3"))
    assert (records.id, list(records.text("user")), list(records.text("node_list"))) == (["7_3"], ["ann"], ["n[1-2]"])
    numbers = {name: records.number(name).tolist() for name in ("run", "walltime", "nodes", "cores")}
    assert numbers == {"run": [600.0], "walltime": [3600.0], "nodes": [2.0], "cores": [8.0]}
    assert (records.number("start") - records.number("submit")).tolist() == [60.0]
    assert (account.records, account.left_out) == (1, {})


def test_records_that_are_no_jobs_are_counted_by_reason(tmp_path: Path) -> None:
    unknown = "2021-12-10T14:23:28|Unknown|Unknown"
    _, account = read(
        tmp_path,
        HEADER,
        record(),
        record("1.batch"),
        record("2", times=unknown, elapsed="00:00:00", state="PENDING"),
        record("3", times=TIMES[:40] + "Unknown", state="RUNNING"),
        record("4", elapsed="00:00:00"),
        record("5", nodes="", cores="0"),
        record("6", times=TIMES.replace("2021", "20x1")),
    )
    reasons = {"step": [3], "never_started": [4], "not_ended": [5], "no_time": [6], "no_size": [7], "malformed": [8]}
    assert left_out(account) == reasons
    assert account.records == 7


@pytest.mark.parametrize("text", ["UNLIMITED", "Partition_Limit", ""])
def test_no_limit_is_no_walltime(tmp_path: Path, text: str) -> None:
    records, _ = read(tmp_path, HEADER, record(limit=text))
    assert str(records.number("walltime")[0]) == "nan"


@pytest.mark.parametrize(
    "odd",
    [
        record("2", line="sbatch a|b"),
        record("2", line="sbatch a|b||"),
        record("2", name="a|b"),
        record("2", line="sbatch <<E\nsleep 3|4\n\nE"),
        record("2") + "|",
    ],
    ids=["text", "texts", "beside a name", "lines", "parsable"],
)
def test_a_delimiter_in_a_text_is_read_where_one_way_fits(tmp_path: Path, odd: str) -> None:
    records, account = read(tmp_path, HEADER, record("1"), odd, record("3"))
    assert (records.id, account.left_out, account.records) == (["1", "2", "3"], {}, 3)
    assert [list(records.text(name)) for name in ("user", "account")] == [["ann"] * 3, ["physics"] * 3]


@pytest.mark.parametrize("odd", [record("2", user="an|n"), record("2", account="phy|sics"), record("2", nodes="2|")])
def test_a_record_that_more_than_one_way_fits_is_malformed(tmp_path: Path, odd: str) -> None:
    records, account = read(tmp_path, HEADER, record("1"), odd, record("3"))
    assert (records.id, left_out(account)) == (["1", "3"], {"malformed": [3]})


def test_where_the_clock_goes_back_elapsed_decides(tmp_path: Path) -> None:
    back = "2021-10-31T02:50:00|2021-10-31T02:55:00|2021-10-31T02:05:00"
    for zone in (None, "Europe/Berlin"):
        records, _ = read(tmp_path, HEADER, record(times=back, elapsed="00:10:00"), zone=zone)
        assert records.number("run").tolist() == [600.0]
        assert (records.number("start") - records.number("submit")).tolist() == [300.0]
    after = "2021-10-31T02:55:00|2021-10-31T02:05:00|2021-10-31T02:15:00"
    records, _ = read(tmp_path, HEADER, record(times=after, elapsed="00:10:00"), zone="Europe/Berlin")
    assert (records.number("start") - records.number("submit")).tolist() == [600.0]


def test_columns_that_are_needed_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the column 'submit' is missing"):
        read(tmp_path, "JobID|State|Start|Elapsed", "1|COMPLETED|2021-12-10T14:24:28|00:10:00")


def test_an_injected_delimiter_changes_no_other_job(shared: Path, tmp_path: Path) -> None:
    lines = gzip.decompress((shared / "data/traces/phillips_sacct.txt.gz").read_bytes()).decode().splitlines()[:400]
    whole, rng = rows(*read(tmp_path, *lines)), random.Random(1)
    for _ in range(40):
        at = rng.randrange(len(lines))
        place = rng.randrange(len(lines[at]) + 1)
        changed = [*lines[:at], lines[at][:place] + "|" + lines[at][place:], *lines[at + 1 :]]
        found = rows(*read(tmp_path, *changed))
        assert {line: row for line, row in found.items() if line != at + 1} == {
            line: row for line, row in whole.items() if line != at + 1
        }
        assert found.get(at + 1, "malformed") in ("malformed", whole.get(at + 1))


def rows(records: Records, account: Account) -> dict[int, object]:
    assert account.records == len(records) + sum(entry.count for entry in account.left_out.values()) == 400
    columns = [records.number(name).tolist() for name in ("submit", "start", "run", "nodes", "cores")]
    texts = [list(records.text(name)) for name in ("user", "account", "partition", "state", "node_list")]
    return dict(zip(records.line, map(str, zip(records.id, *columns, *texts, strict=True)), strict=True))
