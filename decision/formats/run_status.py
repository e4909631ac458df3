"""``status.json``, which tells readers of a run's folder that a run is under way there, or failed."""

from contextlib import suppress
from pathlib import Path

import msgspec

from decision.model.errors import InputError

from .files import read_bytes

STATUS = "status.json"


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """A run at one instant."""

    policy: str
    pid: int
    written: float  # seconds since 1970
    jobs: int  # of the workloads
    now: float  # simulated seconds
    submitted: int
    waiting: int
    running: int
    hosts: str  # one of `decision.runs.status.HOST_LETTERS` for each host's HostState
    watts: float | None  # busy hosts at full load; None where the platform does not say
    failed: str = ""  # why the run ended without results; empty while it goes on


def read_status(folder: Path) -> Status | None:
    """The status of the run in this folder; None where no run is in progress and the last one did not fail.

    Raises:
        InputError: if the file is not the status of a run.
    """
    path = folder / STATUS
    if not path.exists():
        return None
    try:
        return msgspec.json.decode(read_bytes(path), type=Status)
    except msgspec.DecodeError as error:
        raise InputError(f"{path}: not the status of a run ({error})") from None
    except InputError:
        if path.exists():
            raise
        return None  # the run ended just now


def check_whole(folder: Path) -> None:
    """Refuse a folder whose last run has left no results; those in it would be of an older one.

    Raises:
        InputError: if a run is under way there, failed, or died.
    """
    status = None
    with suppress(InputError):  # another program's file
        status = read_status(folder)
    if status is None:
        return
    if status.failed:
        reason = f"the last run in this folder failed ({status.failed}); run it again"
    else:
        reason = f"a run in this folder has not ended (process {status.pid}); wait for its end, or run it again"
    raise InputError(f"{folder}: {reason}, or delete {STATUS} to read what an older run has left")
