"""``status.json``: how far the run is that goes on in a folder."""

from pathlib import Path

import msgspec

from decision.model.errors import InputError

from .files import read_bytes

STATUS = "status.json"


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """A run at one instant."""

    policy: str
    written: float  # seconds since 1970
    jobs: int  # of the workloads
    now: float  # simulated seconds
    submitted: int
    waiting: int
    running: int
    hosts: str  # one of `decision.runs.status.HOST_LETTERS` for each host's HostState
    watts: float | None  # busy hosts at full load; None where the platform does not say


def read_status(folder: Path) -> Status | None:
    """The status of the run in this folder; None where it has not said anything yet, or none is in progress.

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
