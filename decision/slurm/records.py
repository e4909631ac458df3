"""Records of what happened: jobs, from sacct, and when cycles of backfill began, from slurmctld's log.

sacct's may be text with columns in any order, or JSON; they become fields by sacct's names.
"""

import lzma
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from zoneinfo import ZoneInfo

import msgspec

from decision.files.accounting.event_logs import sacct_json_records
from decision.files.accounting.read import begins_as_json
from decision.files.accounting.records import Account
from decision.files.accounting.sacct import sacct_records
from decision.model.errors import InputError

from .conf import read_text
from .text import read_date

_COLUMNS = (
    *("JobIDRaw", "JobID", "User", "Account", "Partition", "QOS", "Submit", "Eligible", "Start", "End", "ElapsedRaw"),
    *("TimelimitRaw", "State", "NNodes", "NCPUS", "ReqCPUS", "ReqMem", "ReqTRES", "AllocTRES", "NodeList", "Priority"),
    *("Reason", "Flags", "Constraints", "Reservation", "Suspended", "SubmitLine"),
)
SACCT = f"sacct -a -P -X -D -S 2026-03-02 -E now -o {','.join(_COLUMNS)}"
_OTHERS = ("Elapsed", "Cluster")
_NEEDED = (
    ("JobIDRaw", "JobID"),
    ("Submit",),
    ("Start",),
    ("End",),
    ("State",),
    ("TimelimitRaw", "Timelimit"),
    ("NNodes", "AllocNodes", "ReqNodes", "ReqTRES"),
    ("ReqCPUS", "NCPUS", "AllocCPUS", "ReqTRES"),
)
_READ = dict.fromkeys(name.lower() for name in (*_COLUMNS, *(name for names in _NEEDED for name in names), *_OTHERS))

Fields = Mapping[str, str]  # by sacct's names in lower case


class RecordRow(msgspec.Struct, frozen=True):
    """A line, and where it stands."""

    fields: Fields
    place: str

    def text(self, *names: str) -> str:
        """The first of these columns that is there."""
        return next((self.fields[name.lower()] for name in names if name.lower() in self.fields), "")

    def date(self, name: str, zone: ZoneInfo | None) -> int:
        """Seconds since 1970, `NEVER` where there is no date. Raises InputError."""
        text = self.text(name)
        try:
            return read_date(text, zone)
        except ValueError:
            raise InputError(f"{self.place}: {name} is {text!r}, not a date like 2026-03-02T08:05:47") from None


def read_rows(path: Path, account: Account | None = None) -> list[RecordRow]:
    """All records of ``sacct -P`` or ``sacct --json``, as all readers of logs have them.

    Args:
        path: the file.
        account: counts the records, and those that fit no columns, which are left out.

    Raises:
        InputError: naming the columns that are missing.
    """
    account = account or Account()
    is_json = begins_as_json(path)
    if is_json:
        parts = sacct_json_records(path, account)
    else:
        parts = sacct_records(path, account, read=_READ, check=lambda names: _check(names, path))
    where = f"{path}: job number" if is_json else f"{path}, line"
    rows = [
        RecordRow(dict(zip(columns, values, strict=True)), f"{where} {number}")
        for numbers, columns in parts
        for number, values in zip(numbers, zip(*columns.values(), strict=True), strict=True)
    ]
    if not rows:
        lines = [line for each in account.left_out.values() for line in each.lines]
        which = f" that fits the columns; look at line {min(lines)}" if lines else " follows"
        raise InputError(f"{path}, line 1: no job{which}; make it with: {SACCT}")
    return rows


def _check(columns: Sequence[str], path: Path) -> None:
    missing = [names[0] for names in _NEEDED if not any(name.lower() in columns for name in names)]
    if missing:
        raise InputError(f"{path}, line 1: the columns {', '.join(missing)} are missing; make it with: {SACCT}")


# lines of slurmctld's log, and what sched/backfill of 22.05 and of 26.05 writes there when a cycle begins
_LOGGED = re.compile(r"^\[?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?\]?\s+(.*)")
_BEGINS = re.compile(r"^cycle\b|(?:_attempt_backfill|backfill):?.*\bbeginning\b|backfill: beginning")


def read_cycles(path: Path, zone: ZoneInfo | None = None) -> list[int]:
    """Seconds since 1970 at which cycles began, ascending.

    slurmctld says "backfill: beginning" with ``DebugFlags=Backfill`` or ``SlurmctldDebug=debug``.

    Raises:
        InputError: if there is none, or a line is no time.
    """
    if path.suffix == ".xz":
        try:
            with lzma.open(path, "rt", encoding="utf-8", errors="replace") as file:
                content = file.read()
        except (OSError, lzma.LZMAError) as error:
            raise InputError(f"{path}: cannot be unpacked ({error}); check the file") from None
    else:
        content = read_text(path)
    times, plain = [], True
    for number, line in enumerate(content.splitlines(), 1):
        text = line.strip()
        found = _LOGGED.match(text)
        if found and found[2]:
            plain = False
            if _BEGINS.search(found[2]):
                times.append(read_date(found[1], zone))
        elif text and (plain or found):
            is_number = not found and text.replace(".", "", 1).isdigit()
            try:
                times.append(round(float(text)) if is_number else read_date(text, zone))
            except ValueError:
                raise InputError(
                    f"{path}, line {number}: {text[:40]!r} is not a time like 2026-03-02T08:05:48"
                ) from None
    if not times:
        raise InputError(
            f"{path}: no cycle of backfill begins in it; log with DebugFlags=Backfill, or give one time a line"
        )
    return sorted(set(times))
