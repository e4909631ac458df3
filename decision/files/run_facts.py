"""``run.json``: what made the files in a run's folder, and what became of the run.

It is the first file that a run writes and the last that it completes, so readers know whether the others are whole and
of one run. A lock, ``run.lock``, is held by the run's process: it ends with the process, however that ends.
"""

import datetime
import fcntl
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Literal

import msgspec

from decision.model.errors import InputError

from .text import InputFacts, read_bytes
from .workload import Selection

RUN, LOCK = "run.json", "run.lock"
RESULTS, CAMPAIGN = "runs", "runs"  # the folder of many runs' results, and what its file says it is
_TRIES = 5  # to get the lock: a reader that looks at it holds it for an instant
_PAUSE = 0.02  # seconds between them


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A run, or a training: who decided or learned what, and how it went."""

    kind: Literal["run", "training"] = "run"
    state: Literal["running", "finished", "failed", "interrupted"] = "running"  # interrupted: only a training
    reason: str = ""  # why it failed or was interrupted
    decision: str  # the package's version
    command: str = ""  # as it was typed; empty for a run from Python
    policy: str  # as ``--policy`` takes it, and its options; of a training the scheduler, and its settings
    options: Mapping[str, str] = {}
    policy_file: InputFacts | None = None  # of a policy that is a file: a checkpoint, or Python
    seed: int = 0
    engine: str
    energy: bool = False
    platform: InputFacts
    workloads: tuple[InputFacts, ...]
    selection: Selection = Selection()  # of each workload's jobs
    events: tuple[InputFacts, ...] = ()
    clock: float | None = None  # seconds since 1970 that the machine's clock showed at 0 s, where the workloads say it
    host: str  # where it ran, and as which process
    process: int
    begin: datetime.datetime
    end: datetime.datetime | None = None
    window_gap: float | None = None  # mean over windows: hops above a lower bound, as a share, where one is known
    lost_work: float | None = None  # host-seconds that were done in vain
    files: Mapping[str, int] = {}  # their names and bytes; while it is not finished, those of the run before

    @property
    def name(self) -> str:
        """The policy with its options, as ``--policy`` takes both."""
        return ",".join([self.policy, *(f"{name}={value}" for name, value in self.options.items())])


def read_facts(folder: Path) -> RunFacts | None:
    """What made the files in a folder; None where no ``run.json`` of ours says it."""
    try:
        return msgspec.json.decode(read_bytes(folder / RUN), type=RunFacts)
    except (InputError, msgspec.DecodeError):
        return None


def forget_run(folder: Path) -> None:
    """Remove ``run.json`` where other files than those that it knows have been written."""
    (folder / RUN).unlink(missing_ok=True)


def lock_folder(folder: Path) -> BinaryIO | None:
    """Lock a folder until the file is closed, or the process ends; None where another one holds it.

    Raises:
        OSError: if the file cannot be written.
    """
    for _ in range(_TRIES):
        file = (folder / LOCK).open("ab")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            time.sleep(_PAUSE)
            continue
        except OSError:  # a file system without locks
            return file
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), (folder / LOCK).stat()):
                return file
        file.close()  # the one before removed it when it ended
    return None


def is_locked(folder: Path) -> bool:
    """Whether a run goes on in a folder."""
    try:
        with (folder / LOCK).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:  # held; or nobody knows, on a file system without locks
        return True
    return False


def check_whole(folder: Path, tables: Sequence[Path] = ()) -> RunFacts | None:
    """Refuse a folder whose files are not those of one run that has finished; one without ``run.json`` passes.

    Args:
        folder: of the run.
        tables: the files that are to be read, if they exist.

    Raises:
        InputError: if a run is under way there, failed or died, or the files are not those that it wrote.
    """
    facts = read_facts(folder)
    if facts is None:
        # a file that is there and says nothing of a run is a comparison's, half of one, or another program's
        if (campaign := campaign_of(folder)) is not None:
            raise InputError(f"{campaign}: {what_a_campaign_has(campaign)}")
        if (folder / RUN).is_file():
            cure = "run it again, or remove it to read the other files as they are"
            raise InputError(
                f"{folder / RUN}: damaged, or no run's, so that nothing says what made this folder; {cure}"
            )
        return None
    if facts.state != "finished":
        process, cure = f"(process {facts.process} on {facts.host})", "run it again"
        if is_locked(folder):
            trouble, cure = f"a run goes on in this folder {process}", "wait for its end"
        elif facts.state == "failed":
            trouble = f"the last run in this folder failed ({facts.reason})"
        else:
            trouble = f"the last run in this folder died without a word {process}"
        raise InputError(f"{folder}: {trouble}; {cure}, or delete {RUN} to read what an older run has left")
    for table in tables if any(table.name in facts.files for table in tables) else ():
        size, written = table.stat().st_size if table.is_file() else None, facts.files.get(table.name)
        if size == written or (size is None and table.name.endswith("_machine_states.csv")):  # large, and may be spared
            continue
        if size is None:
            trouble = f"is missing: the run wrote {written:,} bytes"
        elif written is None:
            trouble = "is not of the run that made the other files"
        else:
            trouble = f"was changed after the run: it had {written:,} bytes and has {size:,}"
        raise InputError(f"{table}: {trouble}; run it again, or delete {RUN} to read it as it is")
    return facts


def campaign_of(folder: Path) -> Path | None:
    """The folder of the comparison, advice or reproduction that a folder is, or keeps the results of; or None."""
    for place in (folder, folder / RESULTS):
        try:
            facts = msgspec.json.decode(read_bytes(place / RUN))
        except (InputError, msgspec.DecodeError):
            continue
        if isinstance(facts, dict) and facts.get("kind") == CAMPAIGN:
            return place.parent
    return None


def what_a_campaign_has(folder: Path) -> str:
    """What the folder of many runs is, and what can be seen of it."""
    pages = [page for name in ("report.html", "advice.html") if (page := folder / name).is_file()]
    seen = f"see {pages[0]}, or " if pages else ""
    table = f"write a row for each run: decision report export {folder} -o runs.csv"
    return f"results of many runs, of which figures are kept and no schedules; {seen}{table}"


# ``status.json``: how far the run is that goes on in a folder.

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
    hosts: str  # one of `decision.experiments.folder.HOST_LETTERS` for each host's HostState
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
