"""The files and options that a run starts from."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from decision.formats import load_events, load_platform, load_swf, load_workload, write_workload
from decision.model.errors import ConfigError
from decision.model.platform import Platform
from decision.model.workload import MachineEvent, Workload


class SwfOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a log in the Standard Workload Format becomes a workload; see `decision.formats.load_swf`."""

    jobs: slice | None = None
    nodes: int | None = None
    walltime: Literal["requested", "runtime", "none"] = "requested"


class Inputs(msgspec.Struct, frozen=True, kw_only=True):
    """What is simulated, as the user names it."""

    platform: Path
    workloads: tuple[Path, ...]
    events: tuple[Path, ...] = ()
    energy: bool = False
    swf: SwfOptions = SwfOptions()


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """What is simulated, read from its files."""

    inputs: Inputs
    platform: Platform
    workloads: list[Workload]  # named w0, w1, ... as Batsim names them
    events: list[MachineEvent]


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """Who decides, as the user names it."""

    policy: str
    settings: dict[str, str] = {}
    seed: int = 0


def load(inputs: Inputs) -> Case:
    """Read all files. Raises InputError."""
    return Case(
        inputs=inputs,
        platform=load_platform(inputs.platform, energy=inputs.energy),
        workloads=[_read_workload(path, f"w{i}", inputs.swf) for i, path in enumerate(inputs.workloads)],
        events=read_events(inputs.events),
    )


def read_events(paths: Sequence[Path], forward_unknown: bool = False) -> list[MachineEvent]:
    """External events of all files. Raises InputError."""
    return [event for path in paths for event in load_events(path, forward_unknown)]


def workload_files(case: Case, folder: Path) -> list[Path]:
    """The workloads as files that Batsim reads; logs are converted into `folder`."""
    files = []
    for path, workload in zip(case.inputs.workloads, case.workloads, strict=True):
        if is_swf(path):
            path = folder / f"{workload.name}.json"
            write_workload(path, workload)
        files.append(path)
    return files


def is_swf(path: Path) -> bool:
    """Whether a file's name says that it is a log in the Standard Workload Format."""
    return path.suffix.lower() == ".swf"


def _read_workload(path: Path, name: str, swf: SwfOptions) -> Workload:
    if is_swf(path):
        return load_swf(path, jobs=swf.jobs, nodes=swf.nodes, walltime=swf.walltime, name=name)
    return load_workload(path, name, keep_source=True)


def writable_folder(path: Path) -> Path:
    """Make a folder for results, and see now rather than after the run that files can be written there.

    Raises:
        ConfigError: if they cannot.
    """
    probe = path / ".writable"
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b".")
        probe.unlink()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written ({error.strerror}); choose another folder") from None
    return path
