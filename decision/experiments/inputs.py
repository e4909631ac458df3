"""The files and options that a run starts from."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from decision.engine.rules import check_events
from decision.files import load_platform, write_workload
from decision.files.accounting.read import recognise
from decision.files.batsim_json import without_trace
from decision.files.events import check_supply, converted_events, load_placed_events
from decision.files.profiles import converted_lines, is_of_5
from decision.files.text import InputFacts, file_facts, make_folder, read_bytes
from decision.files.workload import ZONELESS, Selection, no_local_times, no_time_field
from decision.model.computer import find_workload
from decision.model.errors import ConfigError
from decision.model.platform import Platform
from decision.model.workload import MachineEvent, Workload
from decision.policies.runtimes.walltimes import fill_missing, missing_text
from decision.policies.traits import PolicySpec, read_spec


class Inputs(msgspec.Struct, frozen=True, kw_only=True):
    """What is simulated, as the user names it."""

    platform: Path
    workloads: tuple[Path, ...]
    events: tuple[Path, ...] = ()
    energy: bool = False
    compute_sharing: bool = False  # whether several jobs may compute on one host
    calls: Literal["us", "ms"] = "us"  # what a policy's calls are rounded to: microseconds, or as in Batsim 5
    selection: Selection = Selection()  # of each workload
    feedback: bool = False  # whether users' later sessions come when their earlier jobs have ended


class StandinInputs(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line of a Batsim says about a simulation, whatever its version."""

    platform: Path
    workloads: tuple[Path, ...] = ()
    events: tuple[Path, ...] = ()
    master: str = "master_host"
    roles: Mapping[str, str] = {}
    mmax: int = 0  # hosts at most, 0 for all
    mmax_workload: bool = False  # hosts at most: the largest nb_res

    def load_platform(self, workloads: Sequence[Workload], *, energy: bool, by_numbers: bool = False) -> Platform:
        """The platform of so many hosts."""
        limits = [self.mmax] if self.mmax else []
        if self.mmax_workload and workloads:
            limits.append(max(workload.nb_res for workload in workloads))
        return load_platform(
            self.platform,
            energy=energy,
            roles=self.roles,
            master=self.master,
            mmax=min(limits, default=None),
            by_numbers=by_numbers,
        )


_TIMED_FROM_0 = ("json", "swf", "gwf")  # formats of workloads, whose own clocks begin with them


class LoadedInputs(msgspec.Struct, frozen=True, kw_only=True):
    """What is simulated, read from its files."""

    inputs: Inputs
    platform: Platform
    workloads: list[Workload]  # named w0, w1, ... as Batsim names them
    events: list[MachineEvent]
    capped: bool = False  # whether the events are those of the files under a cap on power


class LogOnHosts(NamedTuple):
    """One workload on a platform, and what a manifest says of them."""

    platform: Platform
    workload: Workload
    files: tuple[InputFacts, ...]  # of the platform, of the workload, and of the events
    selection: Selection = Selection()  # which jobs of its file the workload has
    events: tuple[MachineEvent, ...] = ()


class PolicyChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The policy, its options and its seed, as the user names them."""

    policy: str
    settings: dict[str, str] = {}
    seed: int = 0
    decide_limit: float = 0.0  # seconds that a policy in Python may take for a decision; 0 means no limit
    own: Any = None  # the policy itself, where the user gave an object

    @property
    def spec(self) -> PolicySpec:
        """The named policy's name and options; of an object its name alone. Raises ConfigError for a wrong text."""
        return read_spec(self.policy, self.settings) if self.own is None else PolicySpec(self.policy, {})


def load_inputs(inputs: Inputs) -> LoadedInputs:
    """Read all files. Raises InputError, or ConfigError if an option does not fit them."""
    check_reading(inputs.workloads, inputs.selection)
    platform = load_platform(inputs.platform, energy=inputs.energy)
    workloads = [read_selected(path, f"w{i}", inputs.selection, platform) for i, path in enumerate(inputs.workloads)]
    # Each of several files of accounting records would begin at 0 s, and a job that is in two of them run twice
    records = [each.path for each in workloads if each.reading is not None and each.reading.format not in _TIMED_FROM_0]
    if len(records) > 1:
        files = " ".join(records)
        why = "as workloads of their own each would begin at 0 s"
        raise ConfigError(
            f"{records[0]} and {records[1]} are accounting records, and {why}; make one workload of them "
            f"(decision workload convert {files} -o log.json), or one of each where they are of different machines",
            field="workload",
        )
    events = read_events(inputs.events, len(platform.hosts), supply=True)
    check_supply(events, len(platform.hosts), workloads)
    return LoadedInputs(inputs=inputs, platform=platform, workloads=workloads, events=events)


def input_files(inputs: Inputs) -> list[InputFacts]:
    """The platform's file and the workloads'. Raises InputError if one cannot be read."""
    return [file_facts(path) for path in (inputs.platform, *inputs.workloads)]


def first_log(case: LoadedInputs) -> LogOnHosts:
    """The first workload on the platform. Raises InputError if a file cannot be read."""
    files = (*input_files(case.inputs)[:2], *map(file_facts, case.inputs.events))
    return LogOnHosts(case.platform, case.workloads[0], files, case.inputs.selection, tuple(case.events))


def read_events(
    paths: Sequence[Path], nb_hosts: int, forward_unknown: bool = False, supply: bool = False
) -> list[MachineEvent]:
    """External events of all files, in Batsim's order.

    Raises:
        InputError: if a line is none.
        ConfigError: if one names a host which is not there, or cannot happen after those before it; with its line.
    """
    placed = load_placed_events(paths, forward_unknown, supply)
    events = [event for _, event in placed]
    check_events(events, nb_hosts, [place for place, _ in placed])
    return events


def workload_files(case: LoadedInputs, folder: Path, to: str) -> list[Path]:
    """The workloads as files that a Batsim 4 or 5 (`to`) reads.

    Logs, workloads that were changed, and those of the other Batsim are written into `folder`.
    """
    files, as_they_are = [], case.inputs.selection == Selection() and not case.inputs.feedback
    for path, workload in zip(case.inputs.workloads, case.workloads, strict=True):
        changed = folder / f"{workload.name}.json"
        if recognise(path) != "json" or not as_they_are:
            write_workload(changed, replace(workload, trace=None))  # what really happened is not for a scheduler
            path = changed
        elif workload.trace is not None:
            if not changed.exists():  # for a Batsim that was started ahead, and reads it
                changed.write_bytes(without_trace(read_bytes(path)))
            path = changed
        data = read_bytes(find_workload(path))
        if is_of_5(data) != (to == "5"):
            changed.write_bytes(b"".join(converted_lines(data, to, str(path))))
            path = changed
        files.append(path)
    return files


def event_files(case: LoadedInputs, folder: Path, to: str) -> list[Path]:
    """The external events as files that a Batsim 4 or 5 (`to`) reads; those that must be converted are in `folder`."""
    files, given = [], case.inputs.events
    if case.capped:
        given = (folder / "capped.txt",)
        given[0].write_bytes(b"".join(event.source + b"\n" for event in case.events))
    for number, path in enumerate(given):
        converted = converted_events(path, to)
        if converted.split() != path.read_bytes().split():
            path = folder / f"events{number}.txt"
            path.write_bytes(converted)
        files.append(path)
    return files


def check_reading(paths: Sequence[Path], selection: Selection) -> None:
    """Refuse a field of a log, or a time zone, where no file has such a thing. Raises ConfigError."""
    if selection.time_field is None and selection.time_zone is None:
        return
    names, formats = ", ".join(map(str, paths)) or "the workload", [recognise(path) for path in paths]
    if selection.time_field is not None and "swf" not in formats:
        raise no_time_field(names)
    if selection.time_zone is not None and not set(formats) - ZONELESS:
        raise no_local_times(names)


def read_selected(source: Path | Workload, name: str, selection: Selection, platform: Platform) -> Workload:
    """The selected jobs of a file, or of a workload that keeps its name.

    Raises:
        InputError: if the file cannot be used, or no job is left.
        ConfigError: if run times are needed and not known.
    """
    speed, asked = one_speed(platform), replace(selection, missing="none")
    try:
        if isinstance(source, Workload):
            return fill_missing(asked.of(source, speed=speed), selection.missing, speed=speed)
        workload = asked.read(source, name, keep_source=True, speed=speed)
        note = missing_text(workload, selection.missing) if selection.walltime == "requested" else ""
        filled = fill_missing(workload, selection.missing, speed=speed)
        return replace(filled, notes=(*filled.notes, note)) if note else filled
    except ConfigError as error:
        if error.field != "speed":
            raise
        reason = f"run times are not known before: jobs compute, and the hosts of {platform.path} differ in speed"
        where = source.path or "the workload" if isinstance(source, Workload) else source
        raise ConfigError(f"{where}: {reason}; take the requested walltimes", field="walltime") from None


def one_speed(platform: Platform) -> float | None:
    """flop/s of the hosts; None where they differ."""
    speeds = {host.pstates[host.initial_pstate].speed for host in platform.hosts}
    return speeds.pop() if len(speeds) == 1 else None


def option_files(choice: PolicyChoice) -> list[Path]:
    """The files that a policy's options name, such as ``cap=watts.csv``."""
    return [Path(value) for value in choice.spec.options.values() if value and Path(value).is_file()]


def writable_folder(path: Path) -> Path:
    """Make a folder for results, and check before the run that files can be written there.

    Raises:
        ConfigError: if they cannot be written.
    """
    if path.resolve() == Path(path.anchor or "/"):
        raise ConfigError(f"{path}: the root of all folders is none for results; choose another folder", field="output")
    try:
        make_folder(path)
        with TemporaryFile(dir=path) as probe:  # without a name that another process could use, too
            probe.write(b".")
            probe.flush()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written ({error.strerror}); choose another folder") from None
    return path
