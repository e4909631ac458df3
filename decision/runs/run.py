"""Whole runs: from files and a policy's name to Batsim's output files and their summary."""

import math
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from decision.analysis.groups import write_groups
from decision.analysis.plots import require_matplotlib
from decision.analysis.plots.paper import paper
from decision.analysis.rates import emitted, paid
from decision.analysis.recorded import RECORDED, recorded_run
from decision.analysis.runs import waste_of
from decision.analysis.summary import Summary, summarise
from decision.batsim.process import FILE_PREFIX, FRESH
from decision.engine.options import EngineOptions
from decision.formats import write_run
from decision.formats.green_files import write_green_files
from decision.formats.outputs_read import read_run_record
from decision.model.dates import clock_at_zero
from decision.model.demand import context
from decision.model.lost_work import lost_work
from decision.model.record import Context, JobTable, RunRecord
from decision.policies.around.supplied import battery_table, with_cap
from decision.policies.cap import CAP
from decision.policies.registry import find_agent, find_policy
from decision.policies.source import MessageAgent
from decision.policies.supply_settings import BATTERY
from decision.simulation import simulate_workloads
from decision.simulation.simulate import Progress

from . import Engine
from .batsim_run import RealBatsim, run_on_batsim, write_predictions_of
from .by_messages import agent_of, open_loop, options_by_messages
from .engines import explained, make_engine, simulate_by_messages
from .folder import describe_run, run_folder
from .inputs import LoadedInputs, PolicyChoice
from .status import ReportingResponder
from .watching import Show, watched

if TYPE_CHECKING:
    from decision.batsim.agent import Agent


def run_to_folder(
    case: LoadedInputs,
    choice: PolicyChoice,
    output: Path,
    *,
    engine: Engine = Engine.EMBEDDED,
    batsim: RealBatsim = RealBatsim(),  # noqa: B008 - immutable
    plot: bool = False,
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
        plot: draw ``output/schedule`` too, in the paper's format.
        show: called from time to time with how far the run is.
        command: what the user typed, for ``run.json``.

    Raises:
        ConfigError: if the inputs do not fit together, the files cannot be written, or another run goes on there.
        PolicyError: if the policy decides something impossible or stops deciding.
        PeerError: if Batsim dies, with the reason that it gave; and as `decision.batsim.launcher.run_batsim`.
    """
    if plot:
        require_matplotlib()
    case = _with_cap(case, choice)
    known = _known(case, choice)
    with run_folder(output, describe_run(case, choice, engine, command)) as written:
        for left in output.absolute().glob(f"{FRESH}*"):  # by a run that was killed
            if batsim.ahead is None or left != batsim.ahead.fresh:
                shutil.rmtree(left, ignore_errors=True)
        if engine in (Engine.BATSIM, Engine.DOCKER) and choice.policy != RECORDED:
            files, jobs, joules, gap = run_on_batsim(case, choice, output.absolute(), engine, batsim, show)
        else:
            files, jobs, joules, gap = _simulate_to_files(case, choice, output, engine, show)
        written += files + write_green_files(output, known) + write_groups(output, jobs, case.workloads)
        written.window_gap = None if math.isnan(gap) else gap
        written.lost_work = lost = lost_work(jobs, case.workloads)
        if plot:
            written.append(_draw(case, choice, output, jobs))
    joules, waste, rated = joules if case.inputs.energy else math.nan, (math.nan, math.nan), (math.nan, math.nan)
    if case.inputs.energy and (any(host.sleep for host in case.platform.hosts) or known.carbon or known.price):
        record = read_run_record(output)
        waste, rated = waste_of(record, case.platform), (emitted(record), paid(record))
    return summarise(jobs, len(case.platform.hosts), joules, gap, known, waste=waste, rated=rated, lost_work=lost)


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
        agent = find_agent(choice.policy, choice.settings)
    options = EngineOptions(energy=case.inputs.energy, calls=case.inputs.calls)
    if agent is not None:
        options = options_by_messages(case, choice)
    if agent is None:
        return simulate_workloads(
            case.platform,
            case.workloads,
            choice.policy if choice.own is None else choice.own,
            choice.settings,
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
    if case.capped or (choice.own is None and CAP not in choice.settings and f",{CAP}=" not in choice.policy):
        return case
    policy = find_policy(choice.policy, choice.settings) if choice.own is None else choice.own
    events = with_cap(policy, case.platform, case.workloads, case.events)
    return case if events is case.events else replace(case, events=list(events), capped=True)


def _known(case: LoadedInputs, choice: PolicyChoice) -> Context:
    """What the run is measured by."""
    policy = choice.own
    if policy is None and (BATTERY in choice.settings or f",{BATTERY}=" in choice.policy):
        policy = find_policy(choice.policy, choice.settings)
    return context(case.workloads, case.events, None if policy is None else battery_table(policy))


def _simulate_to_files(
    case: LoadedInputs, choice: PolicyChoice, folder: Path, engine: Engine, show: Show | None
) -> tuple[list[Path], JobTable, float, float]:
    """The files, the jobs, the joules and the gap of windows of a run on one of our engines; the rest is forgotten."""
    with watched(folder, case, choice, show) as progress:
        record = run_inputs(case, choice, engine=engine, progress=progress)
    files = write_run(folder / FILE_PREFIX, record) + write_predictions_of(folder, record.jobs, record.predictions)
    return files, record.jobs, record.joules, record.window_gap


def _draw(case: LoadedInputs, choice: PolicyChoice, folder: Path, jobs: JobTable) -> Path:
    from decision.analysis.plots.schedules import draw_schedule

    path = folder / f"schedule{paper().suffix}"
    title, begin = f"{choice.policy} on {case.inputs.platform.stem}", clock_at_zero(case.workloads)
    draw_schedule(jobs, len(case.platform.hosts), path, title, begin=begin)
    return path
