"""Whole runs: from files and a policy's name to Batsim's output files and what they come to."""

import math
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from decision.analysis.batsim_files import read_jobs, read_joules
from decision.analysis.extras import require_matplotlib
from decision.analysis.metrics import Summary, summarise
from decision.engine.embedded import EmbeddedEngine
from decision.engine.options import EngineOptions
from decision.engine.reference import ReferenceEngine
from decision.formats import write_run
from decision.model.errors import ConfigError
from decision.model.record import JobTable, RunRecord
from decision.simulation import simulate
from decision.simulation.progress import Progress
from decision.state.cluster import ClusterState

from .agents import make_agent
from .docker import docker_command
from .inprocess import converse
from .inputs import Case, Choice, workload_files, writable_folder
from .launcher import run_batsim
from .pybatsim import PREFIX
from .status import Telling, live_status
from .zmq_loop import Decider

_FILES = "out"  # FOLDER/out_jobs.csv, as Batsim names its files by default

Show = Callable[[float], None]  # is told the simulated time in seconds


def run_here(
    case: Case,
    choice: Choice,
    output: Path,
    *,
    plot: bool = False,
    reference: bool = False,
    show: Show | None = None,
) -> Summary:
    """Run a policy on our own engine and write Batsim's output files to ``output/out_*.csv``.

    Args:
        case: what is simulated.
        choice: who decides.
        output: folder for the files.
        plot: draw ``output/schedule.png`` too.
        reference: simulate with the slow engine in plain Python.
        show: is told the simulated time, in seconds, every now and then.

    Raises:
        ConfigError: if the inputs do not fit together or the files cannot be written.
        PolicyError: if the policy decides something impossible or nothing any more.
    """
    folder = writable_folder(output)
    with _watched(folder, case, choice, show) as progress:
        record = simulate_here(case, choice, reference=reference, progress=progress)
        write_run(folder / _FILES, record)  # before the status goes, lest a watcher find an older run's files
    return _finish(case, choice, folder, record.jobs, record.joules, plot)


def simulate_here(
    case: Case, choice: Choice, *, reference: bool = False, progress: Progress | None = None
) -> RunRecord:
    """Run a policy on our own engine and write nothing; as `run_here`, but `progress` is told more."""
    options = EngineOptions(energy=case.inputs.energy)
    if reference or choice.policy.startswith(PREFIX):
        engine = ReferenceEngine if reference else EmbeddedEngine
        agent = _agent(case, choice)
        watched = agent if progress is None else Telling(agent, progress)
        return converse(engine(case.platform, case.workloads, case.events, options), watched)
    return simulate(
        case.platform,
        case.workloads,
        choice.policy,
        choice.settings,
        events=case.events,
        engine_options=options,
        seed=choice.seed,
        progress=progress,
    )


def run_there(
    case: Case,
    choice: Choice,
    output: Path,
    batsim: str = "batsim",
    *,
    image: str | None = None,
    plot: bool = False,
    timeout: float = 0.0,
    show: Show | None = None,
) -> Summary:
    """Run a policy on a Batsim that we start; Batsim writes ``output/out_*.csv``.

    Args:
        case: what is simulated.
        choice: who decides.
        output: folder for the files.
        batsim: Batsim's command.
        image: the Docker image that is run in the command's place.
        plot: draw ``output/schedule.png`` too.
        timeout: seconds to wait for one of Batsim's messages; 0 waits for ever.
        show: is told the simulated time, in seconds, every now and then.

    Raises:
        PeerError: if Batsim dies, with its own last words; and as `decision.drivers.launcher.run_batsim`.
    """
    folder = writable_folder(output).absolute()
    agent = _agent(case, choice)
    prefix = str(folder / _FILES)
    files = _input_files(case, folder)
    start = [find_batsim(batsim)] if image is None else docker_command(image, [file for _, file in files], folder)
    command = [*start, *(str(word) for pair in files for word in pair), "-e", prefix]
    if case.inputs.energy:
        command.append("-E")
    with _watched(folder, case, choice, show) as progress:
        run_batsim(Telling(agent, progress), command, log=folder / "batsim.log", timeout=timeout)
    return _finish(case, choice, folder, read_jobs(prefix), read_joules(prefix), plot)


@contextmanager
def _watched(folder: Path, case: Case, choice: Choice, show: Show | None) -> Iterator[Progress]:
    """What is to be told of the run goes into its folder and to `show`."""
    jobs = sum(len(workload.jobs) for workload in case.workloads)
    with live_status(folder, choice.policy, jobs, case.platform) as tell:

        def both(now: float, state: ClusterState | None) -> None:
            tell(now, state)
            if show is not None:
                show(now)

        yield both


def _agent(case: Case, choice: Choice) -> Decider:
    return make_agent(choice.policy, choice.settings, platform=case.platform, seed=choice.seed)


def find_batsim(batsim: str) -> str:
    """The path of Batsim's executable. Raises ConfigError if there is no such command."""
    found = shutil.which(batsim)
    if found is None:
        raise ConfigError(f"--batsim {batsim}: there is no such command; give the path of Batsim's executable")
    return found


def _input_files(case: Case, folder: Path) -> list[tuple[str, Path]]:
    """Batsim's options for its input files, each with its file."""
    named = [("-p", case.inputs.platform)]
    named += [("-w", path) for path in workload_files(case, folder)]
    named += [("--events", path) for path in case.inputs.events]
    return [(option, path.absolute()) for option, path in named]


def _finish(case: Case, choice: Choice, folder: Path, jobs: JobTable, joules: float, plot: bool) -> Summary:
    nb_hosts = len(case.platform.hosts)
    if plot:
        _draw(jobs, nb_hosts, folder / "schedule.png", f"{choice.policy} on {case.inputs.platform.stem}")
    return summarise(jobs, nb_hosts, joules if case.inputs.energy else math.nan)


def _draw(jobs: JobTable, nb_hosts: int, path: Path, title: str) -> None:
    require_matplotlib()
    from decision.analysis.plots import draw_schedule

    draw_schedule(jobs, nb_hosts, path, title)
