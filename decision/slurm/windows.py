"""Times in which nodes are not there: down (``sacctmgr show event -P``) or reserved (``scontrol show res``)."""

from pathlib import Path
from zoneinfo import ZoneInfo

from decision.model.errors import InputError

from .accounts import read_table
from .nodes import Absence, read_records
from .text import NEVER, read_date, read_hosts, said

_FAR = 1 << 40  # seconds since 1970: a node that is not back yet
_AWAY = ("DOWN", "DRAIN", "FAIL", "MAINT", "REBOOT", "NOT_RESPONDING")


def read_node_events(path: Path, zone: ZoneInfo | None = None) -> list[Absence]:
    """What ``sacctmgr -P show event`` prints of nodes that could run no job. Raises InputError."""
    found = []
    for number, row in enumerate(read_table(path, "NodeName"), 2):
        state = row.get("state", "").upper()
        if not row["nodename"] or (state and not any(word in state for word in _AWAY)):
            continue
        try:
            begin = read_date(row.get("timestart", row.get("start", "")), zone)
            end = read_date(row.get("timeend", row.get("end", "")), zone)
            nodes = tuple(read_hosts(row["nodename"]))
        except ValueError as error:
            raise InputError(
                f"{path}, line {number}: {said(error)}; is it what sacctmgr -P show event prints?"
            ) from None
        found.append(Absence(nodes, begin, _FAR if end == NEVER else end))
    return found


def read_reservations(path: Path, zone: ZoneInfo | None = None) -> list[Absence]:
    """What ``scontrol show res`` prints. Raises InputError."""
    found = []
    for fields in read_records(path, "ReservationName"):
        name = fields["reservationname"]
        try:
            begin, end = (read_date(fields.get(key, ""), zone) for key in ("starttime", "endtime"))
            nodes = tuple(read_hosts(fields.get("nodes", "")))
        except ValueError as error:
            raise InputError(
                f"{path}: reservation {name}: {said(error)} is neither a date nor a list of nodes"
            ) from None
        found.append(Absence(nodes, begin, _FAR if end == NEVER else end, name))
    return found
