"""A run's folder, read back: Batsim's own output files, and our ``run.json`` and ``status.json`` beside them.

Batsim 3 and 4 write ``PREFIX_jobs.csv``, ``PREFIX_schedule.csv``, ``PREFIX_machine_states.csv`` and, with energy,
``PREFIX_consumed_energy.csv`` and ``PREFIX_pstate_changes.csv``. Batsim 5 writes the same tables without the underscore
(its prefix is ``out/``: ``out/jobs.csv``), and the summary as JSON, ``PREFIXschedule.json``.

``run.json`` says what made the files, and what became of the run. It is the first file that a run writes and the last
that it completes, so readers know whether the others are whole and of one run. A lock, ``run.lock``, is held by the
run's process: it ends with the process, however that ends.
"""

import csv
import datetime
import fcntl
import math
import os
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Literal

import msgspec
import numpy as np

from decision.model.errors import ConfigError, InputError
from decision.model.hosts import MOST_HOSTS, parse_intervals
from decision.model.record import (
    EnergyTable,
    FinalState,
    Floats,
    HostState,
    HostTable,
    JobTable,
    PstateTable,
    RunRecord,
)

from .outputs_write import read_green_files
from .text import InputFacts, read_bytes
from .workload import Selection

# ``run.json``: what made the files in a run's folder, and what became of the run.

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


# The tables that Batsim writes about a run, read back: jobs, machine states, energy, pstate changes.

Columns = dict[str, Sequence[str]]

_SIX_DIGITS = 5.1e-6  # relative error of a number with six digits, and a little
_TOLERATED = 1.0  # seconds that rounded times may be off
_LONGEST = 1e15  # seconds: later ones are no times of a simulation
_SHOWN = 60  # characters of a host set in an error
RUN_ADVICE = "give the folder or the prefix of what Batsim or decision wrote"


def fault_text(error: Exception) -> str:
    """What is wrong with a table."""
    return f"it has no {error}" if isinstance(error, KeyError) else str(error)


def csv_columns(path: Path) -> Columns:
    """The columns of a CSV file by their header."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.reader(file)
            header = next(reader, [])
            rows = []
            for row in reader:
                if len(row) != len(header):
                    raise csv.Error(f"line {reader.line_num} has {len(row)} cells, and the header has {len(header)}")
                rows.append(row)
            return dict(zip(header, zip(*rows, strict=True) if rows else [()] * len(header), strict=True))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path and its permissions") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: text that is not UTF-8; {RUN_ADVICE}") from None
    except csv.Error as error:
        raise InputError(f"{path}: not a table ({error}); {RUN_ADVICE}") from None


def read_job_table(path: Path) -> JobTable:
    """The jobs of ``jobs.csv``. Raises InputError."""
    columns = csv_columns(path)
    try:
        walltime = _numbers(columns["requested_time"])
        size = _numbers(columns["requested_number_of_resources"])
        jobs = JobTable(
            id=[f"{work}!{job}" for work, job in zip(columns["workload_name"], columns["job_id"], strict=True)],
            profile=list(columns["profile"]),
            submit_time=_numbers(columns["submission_time"]),
            # a size that is no whole number becomes 0, which is refused below
            size=np.where(np.isfinite(size) & (np.abs(size) < 2**53), size, 0).astype(np.int64),
            walltime=np.where(walltime < 0, math.inf, walltime),
            final_state=np.array([FinalState[name] for name in columns["final_state"]], np.int64),
            start_time=_numbers(columns["starting_time"]),
            runtime=_numbers(columns["execution_time"]),
            allocation=list(columns["allocated_resources"]),
            energy=_numbers(columns["consumed_energy"]),
            metadata=list(columns["metadata"]),
        )
        ran = jobs.final_state != FinalState.REJECTED
        untold = ~(np.isfinite(jobs.submit_time) & np.isfinite(jobs.start_time) & np.isfinite(jobs.runtime))
        faults = {
            "a time that is not a finite number": untold,
            "a run time below 0": jobs.runtime < 0,
            "a start before its submission": jobs.start_time < jobs.submit_time - _TOLERATED,
            "a time of 1e15 s or more": np.maximum(jobs.start_time, jobs.runtime) >= _LONGEST,
            "a number of hosts that is not 1 or more": jobs.size < 1,
        }
        for fault, has in faults.items():
            if (ran & has).any():
                raise ValueError(f"job {jobs.id[int((ran & has).argmax())]} has {fault}")
        for hosts in set(jobs.allocation):
            if max((last for _, last in parse_intervals(hosts)), default=0) >= MOST_HOSTS:
                raise ValueError(f"a job ran on the hosts {hosts[:_SHOWN]}, and no platform has so many")
        return jobs
    except (KeyError, ValueError, ConfigError) as error:
        raise InputError(
            f"{path}: not the jobs of a run ({fault_text(error)}); was it written by Batsim 3, 4 or 5?"
        ) from None


def _numbers(column: Sequence[str]) -> Floats:
    """Batsim leaves cells of rejected jobs empty."""
    return np.array([float(cell) if cell else math.nan for cell in column])


def read_host_table(path: Path, nb_hosts: int) -> HostTable:
    """The numbers of hosts in each state; without rows where there is no file. Raises InputError."""
    if not path.is_file():
        return HostTable(time=np.zeros(0), counts=np.zeros((0, len(HostState)), np.int64))
    columns = csv_columns(path)
    listed = [state for state in HostState if state is not HostState.UNAVAILABLE]
    try:
        counts = np.stack([_numbers(columns[f"nb_{state.name.lower()}"]) for state in listed], axis=1).astype(np.int64)
        away = nb_hosts - counts.sum(axis=1, keepdims=True)
        return HostTable(time=_numbers(columns["time"]), counts=np.hstack([counts, away]))
    except (KeyError, ValueError) as error:
        raise InputError(f"{path}: not the machine states of a run ({fault_text(error)})") from None


def read_energy_table(path: Path) -> EnergyTable | None:
    """The energy over time; None where there is no file. Raises InputError."""
    if not path.is_file():
        return None
    columns = csv_columns(path)
    try:
        return EnergyTable(
            time=_numbers(columns["time"]),
            energy=_numbers(columns["energy"]),
            event=list(columns["event_type"]),
            wattmin=_numbers(columns["wattmin"]),
        )
    except (KeyError, ValueError) as error:
        raise InputError(f"{path}: not the energy of a run ({fault_text(error)})") from None


def read_pstate_table(path: Path, energy: EnergyTable) -> PstateTable | None:
    """The pstate changes; None where there is no file. Raises InputError."""
    if not path.is_file():
        return None
    columns = csv_columns(path)
    try:
        # times as the energy file has them, where they are those; its first ones are pstates at the beginning
        rounded = _numbers(columns["time"])
        exact = energy.time[np.array(energy.event) == "p"]
        exact = np.concatenate([np.zeros(max(0, len(rounded) - len(exact))), exact])
        same = len(exact) == len(rounded) and np.allclose(exact, rounded, rtol=_SIX_DIGITS, atol=0)
        return PstateTable(
            time=exact if same else rounded,
            hosts=list(columns["machine_id"]),
            pstate=_numbers(columns["new_pstate"]).astype(np.int64),
        )
    except (KeyError, ValueError) as error:
        raise InputError(f"{path}: not the pstate changes of a run ({fault_text(error)})") from None


Place = str | os.PathLike[str]

_NAN = re.compile(rb"(:\s*)-?nan\b")  # what Batsim 5 writes for a mean of nothing, and JSON does not have


class RunFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files of one run; those after `schedule` need not exist."""

    jobs: Path
    schedule: Path
    machine_states: Path
    consumed_energy: Path
    pstate_changes: Path


def find_run(place: Place) -> RunFiles:
    """The files of a run.

    Args:
        place: a prefix (``out/out`` for Batsim 3 and 4, ``out/`` for Batsim 5), or the folder of one run.

    Raises:
        InputError: if there is not exactly one run, the last one there has not ended well, or its files are not whole.
    """
    for stem in (f"{os.fspath(place)}_", os.fspath(place)):
        if Path(f"{stem}jobs.csv").is_file():
            return _checked(_files(stem))
    check_whole(Path(place))
    tables = sorted(Path(place).glob("*jobs.csv"))
    if len(tables) != 1:
        several = f"{len(tables)} runs ({', '.join(file.name for file in tables)})"
        raise InputError(f"{place}: {several if tables else 'no run'} there; {RUN_ADVICE}")
    return _checked(_files(str(tables[0]).removesuffix("jobs.csv")))


def _or_nan(value: float | None) -> float:
    """What ``run.json`` says; nan where it does not."""
    return math.nan if value is None else value


def _checked(files: RunFiles) -> RunFiles:
    check_whole(files.jobs.parent, msgspec.structs.astuple(files))
    return files


def _files(stem: str) -> RunFiles:
    json = Path(f"{stem}schedule.json")
    return RunFiles(
        jobs=Path(f"{stem}jobs.csv"),
        schedule=json if json.is_file() else Path(f"{stem}schedule.csv"),
        machine_states=Path(f"{stem}machine_states.csv"),
        consumed_energy=Path(f"{stem}consumed_energy.csv"),
        pstate_changes=Path(f"{stem}pstate_changes.csv"),
    )


def read_jobs(place: Place) -> JobTable:
    """The jobs of a run, in the file's order; `place` as in `find_run`.

    Raises:
        InputError: if the file cannot be read or is of another kind.
    """
    return read_job_table(find_run(place).jobs)


def read_joules(place: Place) -> float:
    """``consumed_joules`` of a run's summary; `place` as in `find_run`.

    Raises:
        InputError: if the file cannot be read or is of another kind.
    """
    path = find_run(place).schedule
    return _figure(path, read_schedule(path), "consumed_joules")


def read_run_record(place: Place) -> RunRecord:
    """All that Batsim wrote about a run; `place` as in `find_run`.

    Tables of files that are not there are empty or None. Batsim writes the times of machine states and pstate changes
    with six digits; those of pstate changes are read from the energy file, which has them all.

    Raises:
        InputError: if a file cannot be read or is of another kind.
    """
    files = find_run(place)
    figures = read_schedule(files.schedule)

    def figure(name: str) -> float:
        return _figure(files.schedule, figures, name)

    nb_hosts = int(figure("nb_computing_machines"))
    energy = read_energy_table(files.consumed_energy)
    facts = read_facts(files.jobs.parent)
    return RunRecord(
        **msgspec.structs.asdict(read_green_files(files.jobs.parent)),
        nb_hosts=nb_hosts,
        jobs=read_job_table(files.jobs),
        host_states=read_host_table(files.machine_states, nb_hosts),
        energy=energy,
        pstates=None if energy is None else read_pstate_table(files.pstate_changes, energy),
        window_gap=math.nan if facts is None else _or_nan(facts.window_gap),
        lost_work=math.nan if facts is None else _or_nan(facts.lost_work),
        time_in_state=np.array([figure(f"time_{state.name.lower()}") for state in HostState]),
        joules=figure("consumed_joules"),
        nb_switches=int(figure("nb_machine_switches")),
        nb_grouped_switches=int(figure("nb_grouped_switches")),
        scheduling_time=figure("scheduling_time") if "scheduling_time" in figures else math.nan,
        simulation_time=figure("simulation_time") if "simulation_time" in figures else math.nan,
    )


def read_schedule(path: Path) -> dict[str, str]:
    """Batsim's own figures of a run by name, as texts, from its ``schedule.csv`` or ``schedule.json``.

    Raises:
        InputError: if the file cannot be read or is of another kind.
    """
    if path.suffix == ".json":
        try:
            data = _NAN.sub(rb'\1"nan"', read_bytes(path))
            return {name: str(value) for name, value in msgspec.json.decode(data, type=dict).items()}
        except msgspec.DecodeError as error:
            raise InputError(f"{path}: not the summary of a run ({error}); {RUN_ADVICE}") from None
    if not path.is_file():
        raise InputError(f"{path}: there is no such file; a run's jobs and its summary are read together")
    return {name: column[0] for name, column in csv_columns(path).items() if column}


def _figure(path: Path, figures: dict[str, str], name: str) -> float:
    try:
        return float(figures[name])
    except (KeyError, ValueError) as error:
        raise InputError(f"{path}: not the summary of a run ({fault_text(error)}); {RUN_ADVICE}") from None
