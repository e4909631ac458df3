"""A run on a Batsim that we start: its command, its fresh folder, and the files that are taken over."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec.structs import replace

from decision.batsim.process import FILE_PREFIX, FRESH, Ahead, command_of_4, dismiss, find_batsim, speaks_5
from decision.engine.options import EngineOptions
from decision.formats.outputs_read import read_jobs, read_joules
from decision.formats.outputs_write import remove_older
from decision.formats.predictions_write import write_predictions
from decision.model.errors import ConfigError, InputError
from decision.model.record import JobTable, PredictionTable

from . import Engine, Verbosity
from .by_messages import agent_of, open_loop, options_by_messages
from .engines import explained
from .inputs import LoadedInputs, PolicyChoice, event_files, workload_files
from .status import ReportingResponder
from .watching import Show, watched

_FULL = 1 << 16  # bytes: with less room a file ends early


class RealBatsim(msgspec.Struct, frozen=True, kw_only=True):
    """How a real Batsim is run, for `Engine.BATSIM` and `Engine.DOCKER`."""

    command: str = "batsim"  # for BATSIM
    image: str = ""  # for DOCKER
    timeout: float = 0.0  # seconds to wait for one of its messages; 0 waits without limit
    verbosity: Verbosity = Verbosity.QUIET  # of batsim.log
    schedule_trace: bool = False  # whether it writes out_schedule.trace, for Paje: gigabytes for large clusters
    ahead: Ahead | None = None  # a Batsim that was started before the inputs were read, perhaps for this run


def write_predictions_of(folder: Path, jobs: JobTable, predictions: PredictionTable | None) -> list[Path]:
    """FOLDER/predictions.csv, where something was predicted; that of an older run is removed."""
    path = folder / "predictions.csv"
    if predictions is None:
        path.unlink(missing_ok=True)
        return []
    write_predictions(path, jobs, predictions)
    return [path]


def run_on_batsim(
    case: LoadedInputs, choice: PolicyChoice, folder: Path, engine: Engine, batsim: RealBatsim, show: Show | None
) -> tuple[list[Path], JobTable, float, float]:
    """The files, the jobs, the joules and the gap of windows of a run on a Batsim that we start.

    Batsim writes into a fresh folder, from which whole files replace those of an older run.
    """
    from decision.batsim.launcher import docker_command, run_batsim  # with sockets: 15 ms of a start

    options = options_by_messages(case, choice)
    fixed, loop = open_loop(case)
    agent = agent_of(case, choice, options.dynamic_jobs and loop is None, loop)
    log = folder / "batsim.log"
    with watched(folder, case, choice, show) as progress, _fresh_folder(folder, batsim.ahead) as fresh:
        ahead = batsim.ahead
        new = engine is Engine.BATSIM and ahead is None and speaks_5(find_batsim(batsim.command))
        inputs = _input_files(replace(case, workloads=fixed), fresh, "5" if new else "4")
        if engine is Engine.DOCKER:
            start = docker_command(batsim.image, [file for _, file in inputs], folder)
        else:
            start = [find_batsim(batsim.command)]
        if new:
            command = [*start, *(str(word) for pair in inputs for word in pair), *_options_of_5(batsim, fresh, options)]
        else:
            command = command_of_4(
                start,
                inputs,
                fresh,
                verbosity=batsim.verbosity.value,
                schedule_trace=batsim.schedule_trace,
                switches=_switches(options),
            )
        if ahead is not None and ahead.command != command:
            dismiss(ahead)
            ahead = None
        with explained(agent):
            run_batsim(
                ReportingResponder(agent, progress),
                command,
                log=log,
                timeout=batsim.timeout,
                contained=engine is Engine.DOCKER,
                init=("",) if new else (),
                ahead=ahead,
            )
        for _, file in inputs:  # what was converted for this run is not one of its files
            if file.parent == fresh:
                file.unlink()
        jobs, joules = _read(fresh)
        files = _publish(fresh, folder)
        files += write_predictions_of(folder, jobs, agent.predictions(jobs.id))
    return [*files, log], jobs, joules, agent.window_gap


def _read(fresh: Path) -> tuple[JobTable, float]:
    """What Batsim wrote; it does not say that a disk was full."""
    try:
        return read_jobs(f"{fresh}/{FILE_PREFIX}"), read_joules(f"{fresh}/{FILE_PREFIX}")
    except InputError:
        if shutil.disk_usage(fresh).free > _FULL:
            raise
        where = f"{fresh.parent}: Batsim's files cannot be written (the disk is full)"
        raise ConfigError(f"{where}; free space or choose another folder") from None


def _switches(options: EngineOptions) -> list[str]:
    words = {
        "-E": options.energy,
        "--enable-dynamic-jobs": options.dynamic_jobs,
        "--enable-profile-reuse": options.profile_reuse,
        "--forward-unknown-events": options.forward_unknown_events,
    }
    return [word for word, is_on in words.items() if is_on]


@contextmanager
def _fresh_folder(folder: Path, ahead: Ahead | None) -> Iterator[Path]:
    """The folder that Batsim writes into: that of the one which was started ahead, for it or for another."""
    if ahead is not None:
        yield ahead.fresh
        return
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix=FRESH, dir=folder) as fresh:
        yield Path(fresh)


def _options_of_5(batsim: RealBatsim, folder: Path, options: EngineOptions) -> list[str]:
    """What Batsim 5's command line says of the files that it writes, and of energy; its prefix ends as it is given."""
    level = {Verbosity.QUIET: "quiet", Verbosity.DEBUG: "debug"}.get(batsim.verbosity, "info")
    words = ["-e", f"{folder}/{FILE_PREFIX}_", "-v", level, "--trace-machine-state", "--trace-pstate-changes"]
    return [*words, "--energy-host"] if options.energy else words


def _publish(fresh: Path, folder: Path) -> list[Path]:
    """Put the files of a whole run in the place of an older one's."""
    moved = []
    try:
        for path in sorted(fresh.iterdir()):
            moved.append(path.replace(folder / path.name))
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be written ({error.strerror}); choose another folder") from None
    remove_older(folder / FILE_PREFIX, moved)
    return moved


def _input_files(case: LoadedInputs, folder: Path, to: str) -> list[tuple[str, Path]]:
    """The options of a Batsim 4 or 5 (`to`) for its input files, each with its file."""
    named = [("-p", case.inputs.platform)]
    named += [("-w", path) for path in workload_files(case, folder, to)]
    named += [("--external-events" if to == "5" else "--events", path) for path in event_files(case, folder, to)]
    return [(option, path.absolute()) for option, path in named]
