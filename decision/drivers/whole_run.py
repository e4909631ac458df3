"""Whole runs: from files and a policy's name to Batsim's output files and what they come to."""

import math
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from decision.analysis.batsim_files import read_jobs, read_joules
from decision.analysis.metrics import Summary, summarise
from decision.engine.embedded import EmbeddedEngine
from decision.engine.options import EngineOptions
from decision.engine.reference import ReferenceEngine
from decision.formats import write_run
from decision.model.errors import ConfigError
from decision.model.platform import Platform
from decision.model.record import JobTable, RunRecord
from decision.simulation import simulate

from .agents import make_agent
from .inprocess import converse
from .inputs import Inputs, read_events, read_platform, read_workloads, workload_files, writable_folder
from .launcher import run_batsim
from .pybatsim import PREFIX

_FILES = "out"  # FOLDER/out_jobs.csv, as Batsim names its files by default

Progress = Callable[[float], None]


def run_here(
    inputs: Inputs, output: Path, *, plot: bool = False, reference: bool = False, progress: Progress | None = None
) -> Summary:
    """Run a policy on our own engine and write Batsim's output files to ``output/out_*.csv``.

    Args:
        inputs: what to run.
        output: folder for the files.
        plot: draw ``output/schedule.png`` too.
        reference: simulate with the slow engine in plain Python.
        progress: is told the simulated time, in seconds, where the policy is asked message by message.

    Raises:
        ConfigError: if an input cannot be used or the files cannot be written.
        PolicyError: if the policy decides something impossible or nothing any more.
    """
    folder = writable_folder(output)
    platform = read_platform(inputs)
    record = simulate_inputs(inputs, platform, reference=reference, progress=progress)
    write_run(folder / _FILES, record)
    if plot:
        _draw(record.jobs, platform, folder, inputs)
    return summarise(record.jobs, len(platform.hosts), record.joules if inputs.energy else math.nan)


def simulate_inputs(
    inputs: Inputs, platform: Platform, *, reference: bool = False, progress: Progress | None = None
) -> RunRecord:
    """The simulation alone; see `run_here`."""
    workloads = read_workloads(inputs, keep_source=True)
    events = read_events(inputs.events)
    options = EngineOptions(energy=inputs.energy)
    if not reference and not inputs.policy.startswith(PREFIX):
        return simulate(platform, workloads, inputs.policy, inputs.settings, events, options, inputs.seed)
    agent = make_agent(inputs.policy, inputs.settings, platform=platform, seed=inputs.seed)
    engine = (ReferenceEngine if reference else EmbeddedEngine)(platform, workloads, events, options)
    return converse(engine, agent, progress)


def run_there(inputs: Inputs, output: Path, batsim: str, *, plot: bool = False, timeout: float = 0.0) -> Summary:
    """Run a policy on a Batsim that we start; Batsim writes ``output/out_*.csv``.

    Raises:
        PeerError: if Batsim dies, with its own last words; and as `decision.drivers.launcher.run_batsim`.
    """
    folder = writable_folder(output)
    platform = read_platform(inputs)
    agent = make_agent(inputs.policy, inputs.settings, platform=platform, seed=inputs.seed)
    prefix = str(folder / _FILES)
    command = [*_find(batsim), *_batsim_options(inputs, workload_files(inputs, folder), prefix)]
    run_batsim(agent, command, log=folder / "batsim.log", timeout=timeout)
    jobs = read_jobs(prefix)
    if plot:
        _draw(jobs, platform, folder, inputs)
    return summarise(jobs, len(platform.hosts), read_joules(prefix) if inputs.energy else math.nan)


def _draw(jobs: JobTable, platform: Platform, folder: Path, inputs: Inputs) -> None:
    try:
        from decision.analysis.plots import draw_schedule
    except ImportError as error:
        raise ConfigError(f"pictures need matplotlib ({error}): pip install 'decision[analysis]'") from None
    title = f"{inputs.policy} on {inputs.platform.stem}"
    draw_schedule(jobs, len(platform.hosts), folder / "schedule.png", title)


def _find(batsim: str) -> list[str]:
    found = shutil.which(batsim)
    if found is None:
        raise ConfigError(f"--batsim {batsim}: there is no such command; give the path of Batsim's executable")
    return [found]


def _batsim_options(inputs: Inputs, workloads: Sequence[Path], prefix: str) -> list[str]:
    options = ["-p", str(inputs.platform), "-e", prefix]
    for path in workloads:
        options += ["-w", str(path)]
    for path in inputs.events:
        options += ["--events", str(path)]
    return [*options, "-E"] if inputs.energy else options
