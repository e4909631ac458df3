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
    """A run, as the user names it."""

    platform: Path
    workloads: tuple[Path, ...]
    policy: str
    settings: dict[str, str] = {}
    events: tuple[Path, ...] = ()
    energy: bool = False
    seed: int = 0
    swf: SwfOptions = SwfOptions()


def read_platform(inputs: Inputs) -> Platform:
    """The platform. Raises InputError."""
    return load_platform(inputs.platform, energy=inputs.energy)


def read_workloads(inputs: Inputs, keep_source: bool = False) -> list[Workload]:
    """The workloads, named w0, w1, ... as Batsim names them. Raises InputError."""
    return [_read_workload(path, f"w{i}", inputs.swf, keep_source) for i, path in enumerate(inputs.workloads)]


def read_events(paths: Sequence[Path], forward_unknown: bool = False) -> list[MachineEvent]:
    """External events of all files. Raises InputError."""
    return [event for path in paths for event in load_events(path, forward_unknown)]


def workload_files(inputs: Inputs, folder: Path) -> list[Path]:
    """The workloads as files that Batsim reads; logs are converted into `folder`."""
    files = []
    for i, path in enumerate(inputs.workloads):
        if is_swf(path):
            path, log = folder / f"workload{i}.json", path
            write_workload(path, _read_workload(log, f"w{i}", inputs.swf, False))
        files.append(path)
    return files


def is_swf(path: Path) -> bool:
    """Whether a file's name says that it is a log in the Standard Workload Format."""
    return path.suffix.lower() == ".swf"


def _read_workload(path: Path, name: str, swf: SwfOptions, keep_source: bool) -> Workload:
    if is_swf(path):
        return load_swf(path, jobs=swf.jobs, nodes=swf.nodes, walltime=swf.walltime, name=name)
    return load_workload(path, name, keep_source)


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
