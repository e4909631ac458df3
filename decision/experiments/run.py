"""Whole runs, on an engine of ours or a Batsim: from files and a policy's name to output files and their summary."""

import math
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from decision.batsim.conversation import Responder, Simulator
from decision.batsim.process import FILE_PREFIX, FRESH, Ahead, command_of_4, dismiss, find_batsim, speaks_5
from decision.compiling.jit import is_warm
from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.kernels import server
from decision.engine.rules import EngineOptions
from decision.experiments import Engine, Verbosity
from decision.files import write_run, write_workload
from decision.files.outputs_read import read_jobs, read_joules, read_run_record
from decision.files.outputs_write import remove_older, write_green_files, write_predictions
from decision.files.workload import Selection
from decision.model.demand import context, find_sessions, of_fixed
from decision.model.errors import ConfigError, DeadlockError, InputError, PolicyError, RemoteProtocolError, StuckError
from decision.model.platform import Platform
from decision.model.record import Context, JobTable, PredictionTable, RunRecord, lost_work
from decision.model.trace import without_records
from decision.model.workload import MachineEvent, Workload
from decision.policies import find_agent, find_policy
from decision.policies.checks import check_jobs, check_sleep
from decision.policies.loading import MessageAgent
from decision.policies.prepared import ask_and_check
from decision.policies.traits import BATTERY, CAP
from decision.policies.wrappers import entries_of
from decision.policies.wrappers.supply import (
    are_forwarded,
    battery_table,
    check_suspensions,
    may_suspend,
    supplied,
    with_cap,
)
from decision.protocol import Connection, Role
from decision.simulation import Progress, simulate_episode, simulate_workloads
from decision.state.cluster import ClusterState

from .audit import RECORDED, recorded_run
from .energy import emitted, paid
from .folder import ReportingResponder, describe_run, live_status, run_folder
from .inputs import LoadedInputs, PolicyChoice, event_files, one_speed, workload_files
from .metric_list import Summary, summarise
from .metrics import write_groups
from .results import waste_of

if TYPE_CHECKING:
    from decision.batsim.agent import Agent
    from decision.batsim.dynamic_jobs import ClosedLoop
    from decision.batsim.episodes import BatsimForEpisodes
    from decision.engine.reference.engine import ReferenceEngine

# Engines by name: which class simulates, which kernel a run compiles, and the conversation in one process.


def make_engine(
    engine: Engine,
    platform: Platform,
    workloads: Sequence[Workload],
    events: Sequence[MachineEvent],
    options: EngineOptions,
) -> "EmbeddedEngine | ReferenceEngine":
    """One of our engines, ready to simulate.

    Args:
        engine: EMBEDDED or REFERENCE.
        platform: the hosts.
        workloads: the jobs.
        events: external events, in order of time.
        options: what Batsim's command line would say.

    Raises:
        ConfigError: if the inputs do not fit together.
    """
    made = platform, without_records(workloads), events, options
    if engine is Engine.EMBEDDED:
        return EmbeddedEngine(*made)
    from decision.engine.reference.engine import ReferenceEngine

    return ReferenceEngine(*made)


@contextmanager
def explained(agent: Responder) -> Iterator[None]:
    """Where a simulation cannot go on, say what waits and why, which only the decision process knows.

    Raises:
        DeadlockError: in the words of the embedded engine, where the agent has a policy of ours.
    """
    try:
        yield
    except (DeadlockError, StuckError):
        from decision.batsim.agent import Agent

        if not isinstance(agent, Agent):
            raise
        raise agent.deadlock() from None


def engine_that_starts_at_once() -> Engine:
    """The compiled engine if it is compiled on this machine, and else its equal in plain Python."""
    return Engine.EMBEDDED if is_warm(server.engine) else Engine.REFERENCE


def compiled_kernels(engine: Engine, policy: str, settings: dict[str, str]) -> list[Callable[..., Any]]:
    """The outermost compiled functions of a run, which `decision.compiling.jit.is_warm` can check.

    Raises:
        ConfigError: if the policy is unknown.
    """
    if policy == RECORDED:
        return []
    if find_agent(policy, settings) is not None:
        return [server.engine]
    loop = [simulate_episode, server.engine] if engine is Engine.EMBEDDED else [ask_and_check]
    return [*loop, *entries_of(find_policy(policy, settings))]


def simulate_by_messages(engine: Simulator, agent: Responder) -> RunRecord:
    """Simulate with the agent's decisions, through the protocol's own messages in one process.

    Raises:
        PolicyError: if the agent decides something impossible.
    """
    connection = Connection(Role.BATSIM)
    while (question := engine.ask()) is not None:
        reply = agent.handle(connection.send(question))
        try:
            engine.answer(connection.receive(reply))
        except RemoteProtocolError as error:  # our own agent is not a peer: its faults are the policy's
            raise PolicyError(f"t={question.now:g} s: {error}") from None
    return engine.record()


# A run by Batsim's messages: the scheduler that answers, Batsim's options, and the jobs that come by feedback.


def options_by_messages(case: LoadedInputs, choice: PolicyChoice) -> EngineOptions:
    """What Batsim's command line must say for the policy and the events, which are checked.

    Raises:
        ConfigError: if they do not go together.
    """
    feedback, suspends = case.inputs.feedback, False
    if choice.own is not None or find_agent(choice.spec) is None:
        policy = supplied(find_policy(choice.spec) if choice.own is None else choice.own)
        check_jobs(case.platform, case.workloads, policy)
        check_suspensions(policy, case.workloads, case.events)
        check_sleep(policy, case.platform, case.inputs.energy)
        suspends = may_suspend(policy, case.events)
        if suspends and feedback:
            why = f"policy {choice.policy} may suspend jobs, whose users would not know when they end"
            raise ConfigError(f"{why}; leave feedback out, or choose another policy", field="feedback")
    return EngineOptions(
        energy=case.inputs.energy,
        calls=case.inputs.calls,
        compute_sharing=case.inputs.compute_sharing,
        dynamic_jobs=suspends or feedback,
        profile_reuse=feedback,
        forward_unknown_events=are_forwarded(case.events),
    )


def agent_of(
    case: LoadedInputs, choice: PolicyChoice, suspends: bool = False, loop: "ClosedLoop | None" = None
) -> "Agent | MessageAgent":
    """What answers: a policy's agent, or a scheduler that speaks Batsim's messages itself."""
    from decision.batsim.agent import make_agent

    return make_agent(
        choice.policy if choice.own is None else choice.own,
        choice.settings,
        platform=case.platform,
        seed=choice.seed,
        decide_limit=choice.decide_limit,
        suspends=suspends,
        loop=loop,
    )


def open_loop(case: LoadedInputs) -> "tuple[list[Workload], ClosedLoop | None]":
    """The jobs that come at their own times, and those that come when others have ended; None where none do.

    Raises:
        ConfigError: if think times are not known.
    """
    if not case.inputs.feedback:
        return case.workloads, None
    from decision.batsim.dynamic_jobs import ClosedLoop

    speed = one_speed(case.platform)
    found = [(workload, find_sessions(workload, speed)) for workload in case.workloads]
    return [of_fixed(*each) for each in found], ClosedLoop(found)


# How far a run is, reported in its folder and to who asked.

_PACE = 0.1  # seconds between two reports of how far a run is
Show = Callable[[float, int, int], None]  # called with the simulated time in seconds, the jobs done, and all jobs


@contextmanager
def watched(folder: Path, case: LoadedInputs, choice: PolicyChoice, show: Show | None) -> Iterator[Progress]:
    """Report the run's progress in its folder and to `show`."""
    jobs = sum(len(workload.jobs) for workload in case.workloads)
    with live_status(folder, choice.policy, jobs, case.platform) as report:
        last = -_PACE

        def both(now: float, state: ClusterState | None) -> None:
            nonlocal last
            if time.monotonic() - last < _PACE:
                return
            last = time.monotonic()
            report(now, state)
            if show is not None:
                over = 0 if state is None else int(state.nb_jobs - state.nb_queued - state.nb_running)
                show(now, over, jobs)

        yield both


# A run on a Batsim that we start: its command, its fresh folder, and the files that are taken over.

_FULL = 1 << 16  # bytes: with less room a file ends early


class RealBatsim(msgspec.Struct, frozen=True, kw_only=True):
    """How a real Batsim is run, for `Engine.BATSIM` and `Engine.DOCKER`."""

    command: str = "batsim"  # for BATSIM
    image: str = ""  # for DOCKER
    timeout: float = 0.0  # seconds to wait for one of its messages; 0 waits without limit
    verbosity: Verbosity = Verbosity.QUIET  # of batsim.log
    schedule_trace: bool = False  # whether it writes out_schedule.trace, for Paje: gigabytes for large clusters
    arguments: tuple[str, ...] = ()  # more of its options
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
            level = {Verbosity.QUIET: "quiet", Verbosity.DEBUG: "debug"}.get(batsim.verbosity, "info")
            # its prefix ends as it is given
            words = ["-e", f"{fresh}/{FILE_PREFIX}_", "-v", level, "--trace-machine-state", "--trace-pstate-changes"]
            words += ["--energy-host"] if options.energy else []
            command = [*start, *(str(word) for pair in inputs for word in pair), *words, *batsim.arguments]
        else:
            command = command_of_4(
                start,
                inputs,
                fresh,
                verbosity=batsim.verbosity.value,
                schedule_trace=batsim.schedule_trace,
                switches=[*_switches(options), *batsim.arguments],
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
        "--enable-compute-sharing": options.compute_sharing,
        "--forward-unknown-events": options.forward_unknown_events,
    }
    return [word for word, is_on in words.items() if is_on]


@contextmanager
def _fresh_folder(folder: Path, ahead: Ahead | None) -> Iterator[Path]:
    """The folder that Batsim writes into: that of the one which was started ahead, for it or for another."""
    if ahead is not None:
        yield ahead.fresh
        return
    with TemporaryDirectory(prefix=FRESH, dir=folder) as fresh:
        yield Path(fresh)


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


Draw = Callable[[LoadedInputs, str, Path, JobTable], Path]  # writes the picture of a policy's jobs into a folder


def run_to_folder(
    case: LoadedInputs,
    choice: PolicyChoice,
    output: Path,
    *,
    engine: Engine = Engine.EMBEDDED,
    batsim: RealBatsim = RealBatsim(),  # noqa: B008 - immutable
    draw: Draw | None = None,
    show: Show | None = None,
    command: str = "",
) -> Summary:
    """Run a policy and write Batsim's output files, ``output/out_*.csv``; with Batsim, Batsim writes them.

    The files of an older run are replaced when the run is over, and ``output/run.json`` says what made them. A run
    that fails leaves the older files, and a ``run.json`` that says so, with which readers refuse the folder.

    Args:
        case: what is simulated.
        choice: the policy.
        output: folder for the files.
        engine: what simulates.
        batsim: how Batsim is run.
        draw: draws ``output/schedule`` too (`decision.report.plots.schedule_drawer`).
        show: called from time to time with how far the run is.
        command: what the user typed, for ``run.json``.

    Raises:
        ConfigError: if the inputs do not fit together, the files cannot be written, or another run goes on there.
        PolicyError: if the policy decides something impossible or stops deciding.
        PeerError: if Batsim dies, with the reason that it gave; and as `decision.batsim.launcher.run_batsim`.
    """
    case = _with_cap(case, choice)
    known = _known(case, choice)
    with run_folder(output, describe_run(case, choice, engine, command)) as written:
        for left in output.absolute().glob(f"{FRESH}*"):  # by a run that was killed
            if batsim.ahead is None or left != batsim.ahead.fresh:
                shutil.rmtree(left, ignore_errors=True)
        if engine in (Engine.BATSIM, Engine.DOCKER) and choice.policy != RECORDED:
            files, jobs, joules, gap = run_on_batsim(case, choice, output.absolute(), engine, batsim, show)
        else:
            with watched(output, case, choice, show) as progress:
                record = run_inputs(case, choice, engine=engine, progress=progress)
            jobs, joules, gap = record.jobs, record.joules, record.window_gap
            files = write_run(output / FILE_PREFIX, record)
            files += write_predictions_of(output, jobs, record.predictions)
            del record  # of a long run it is gigabytes
        written += files + write_green_files(output, known) + write_groups(output, jobs, case.workloads)
        written.window_gap = None if math.isnan(gap) else gap
        written.lost_work = lost = lost_work(jobs, case.workloads)
        if draw is not None:
            written.append(draw(case, choice.policy, output, jobs))
    joules, waste, rated = joules if case.inputs.energy else math.nan, (math.nan, math.nan), (math.nan, math.nan)
    if case.inputs.energy and (any(host.sleep for host in case.platform.hosts) or known.carbon or known.price):
        # What readers of the files will find: the record's own times have nanoseconds, those of the files six digits
        record = read_run_record(output)
        waste, rated = waste_of(record, case.platform), (emitted(record), paid(record))
    return summarise(jobs, len(case.platform.hosts), joules, gap, known, waste=waste, rated=rated, lost_work=lost)


def run_in_batsim(case: LoadedInputs, choice: PolicyChoice, engine: Engine, batsim: RealBatsim) -> RunRecord:
    """Run a policy over one workload, which need not be that of a file, on a Batsim; only its record stays.

    Raises:
        DecisionError: as `run_to_folder`.
    """
    with TemporaryDirectory(prefix="decision-") as folder:
        path = Path(folder) / "workload.json"
        write_workload(path, replace(case.workloads[0], trace=None))  # what really happened is not for a scheduler
        written = replace(case, inputs=replace(case.inputs, workloads=(path,), selection=Selection()))
        run_to_folder(written, choice, Path(folder), engine=engine, batsim=batsim)
        return read_run_record(folder)


def run_whole(
    case: LoadedInputs, choice: PolicyChoice, batsim: tuple[Engine, RealBatsim] | None = None
) -> tuple[RunRecord, Summary]:
    """Run a policy once over a whole workload, here or in a Batsim, and write nothing; errors as `run_to_folder`."""
    record = run_inputs(case, choice) if batsim is None else run_in_batsim(case, choice, *batsim)
    hosts, gap, lost = len(case.platform.hosts), record.window_gap, record.lost_work
    return record, summarise(record.jobs, hosts, window_gap=gap, known=record, lost_work=lost)


def real_batsim(batsim: "BatsimForEpisodes") -> tuple[Engine, RealBatsim]:
    """How `run_in_batsim` runs what environments would start for each episode."""
    real = RealBatsim(command=batsim.command, image=batsim.image, arguments=batsim.arguments, timeout=batsim.timeout)
    return Engine.DOCKER if batsim.image else Engine.BATSIM, real


def in_batsim(case: LoadedInputs, batsim: "BatsimForEpisodes | None") -> Callable[[str, Workload], JobTable] | None:
    """What runs a policy over other jobs of a case in a Batsim, as gates ask for it; None where there is none."""
    if batsim is None:
        return None
    engine = real_batsim(batsim)

    def run(policy: str, jobs: Workload) -> JobTable:
        alone = replace(case, workloads=[jobs])
        return run_in_batsim(alone, PolicyChoice(policy=policy), *engine).jobs

    return run


def run_inputs(
    case: LoadedInputs, choice: PolicyChoice, *, engine: Engine = Engine.EMBEDDED, progress: Progress | None = None
) -> RunRecord:
    """Run a policy on one of our engines and write nothing; errors as `run_to_folder`."""
    if choice.policy == RECORDED:
        return recorded_run(case.workloads, len(case.platform.hosts))
    case = _with_cap(case, choice)
    fixed, loop = open_loop(case)
    agent: Agent | MessageAgent | None = None
    if loop is not None or (choice.own is None and engine is not Engine.EMBEDDED):
        agent = agent_of(case, choice, loop=loop)
    elif choice.own is None:
        agent = find_agent(choice.spec)
    inputs = case.inputs
    options = EngineOptions(energy=inputs.energy, calls=inputs.calls, compute_sharing=inputs.compute_sharing)
    if agent is not None:
        options = options_by_messages(case, choice)
    if agent is None:
        return simulate_workloads(
            case.platform,
            case.workloads,
            choice.spec if choice.own is None else choice.own,
            events=case.events,
            engine_options=options,
            seed=choice.seed,
            decide_limit=choice.decide_limit,
            progress=progress,
        )
    simulator = make_engine(engine, case.platform, fixed, case.events, options)
    with explained(agent):
        record = simulate_by_messages(simulator, agent if progress is None else ReportingResponder(agent, progress))
    record.predictions = agent.predictions(record.jobs.id)
    record.window_gap = agent.window_gap
    record.know(_known(case, choice))
    record.lost_work = lost_work(record.jobs, case.workloads)
    return record


def _with_cap(case: LoadedInputs, choice: PolicyChoice) -> LoadedInputs:
    """The inputs with the cap on power that the policy's options say."""
    if case.capped or (choice.own is None and CAP not in choice.spec.options):
        return case
    policy = find_policy(choice.spec) if choice.own is None else choice.own
    events = with_cap(policy, case.platform, case.workloads, case.events)
    return case if events is case.events else replace(case, events=list(events), capped=True)


def _known(case: LoadedInputs, choice: PolicyChoice) -> Context:
    """What the run is measured by."""
    policy = choice.own
    if policy is None and BATTERY in choice.spec.options:
        policy = find_policy(choice.spec)
    return context(case.workloads, case.events, None if policy is None else battery_table(policy))
