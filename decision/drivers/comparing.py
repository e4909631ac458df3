"""The runs of `decision compare`, side by side."""

import math
import tempfile
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from decision.analysis.batsim_files import read_run
from decision.analysis.comparison import Outcome
from decision.analysis.measures import measure
from decision.formats import write_workload
from decision.jit import is_warm
from decision.model.errors import DecisionError
from decision.model.record import RunRecord
from decision.policies import ComposedPolicy, find_policy

from .comparison_plan import EngineName, Plan, Run, case_of, contender, runs_of
from .inputs import Case, writable_folder
from .kept import Result
from .pybatsim import PREFIX
from .side_by_side import do_all
from .whole_run import run_there, simulate_here

Progress = Callable[[int, int], None]

_RUNS = "runs"  # folder of the results that are kept


def run_comparison(
    plan: Plan, folder: Path, *, processes: int = 1, progress: Progress = lambda done, of: None
) -> list[Outcome]:
    """Do all runs of a plan that are not kept in ``folder/runs`` yet.

    The windows are drawn once for each workload, so that every policy gets the same; times in a window are those of
    the workload.

    Raises:
        ConfigError: if the plan makes no sense, before anything is run.
        PolicyError, PeerError: if a run fails; what has been finished is kept.
        Interrupted: if a signal asked for the end; likewise.
    """
    kinds = {(p, engine): _kind(p, plan.settings, engine) for p in plan.policies for engine in plan.engines}
    runs = runs_of(plan)
    kept = writable_folder(folder / _RUNS)
    cold = {kind for kind in set(kinds.values()) if not is_warm(kind)}
    first = {kind: run for run in reversed(runs) if (kind := kinds[run.choice.policy, run.engine]) in cold}
    results = do_all(simulate, runs, kept, processes=processes, first=list(first.values()), progress=progress)
    return [_outcome(plan, run, result) for run, result in zip(runs, results, strict=True)]


def simulate(run: Run) -> Result:
    """The metrics of one run by name, those that have a value.

    Raises:
        DecisionError: of the kind that the run failed with; the message names the run.
    """
    try:
        case = case_of(run)
        record = _run_batsim(case, run) if run.engine == "batsim" else _run_here(case, run)
    except DecisionError as error:
        raise type(error)(f"{_name(run)}: {error}") from None
    users = {job.id: job.user for job in case.workloads[0].jobs}
    return {name: value for name, value in measure(record, case.platform, users).items() if not math.isnan(value)}


def _run_here(case: Case, run: Run) -> RunRecord:
    return simulate_here(case, run.choice, reference=run.engine == "reference")


def _run_batsim(case: Case, run: Run) -> RunRecord:
    with tempfile.TemporaryDirectory(prefix="decision-") as folder:
        path = Path(folder) / "workload.json"
        write_workload(path, case.workloads[0])
        written = replace(case, inputs=replace(case.inputs, workloads=(path,)))
        run_there(written, run.choice, Path(folder), run.batsim, timeout=run.timeout)
        return read_run(folder)


def _name(run: Run) -> str:
    jobs = f" jobs {run.window[0]}:{sum(run.window)}" if run.window else ""
    return f"{run.choice.policy} on {run.inputs.workloads[0]}{jobs}, seed {run.choice.seed}"


def _outcome(plan: Plan, run: Run, result: Result) -> Outcome:
    path = run.inputs.workloads[0]
    namesakes = sum(other.stem == path.stem for other in plan.workloads)
    return Outcome(
        workload=path.stem if namesakes == 1 else str(path),
        contender=contender(plan, run.choice.policy, run.engine),
        first_job=run.window[0] if run.window else 0,
        seed=run.choice.seed,
        metrics=result,
    )


def _kind(policy: str, settings: dict[str, str], engine: EngineName) -> str:
    """The outermost compiled function of such runs. Raises ConfigError if there is no such policy."""
    if policy.startswith(PREFIX):
        return "server.advance"
    if not isinstance(find_policy(policy, settings), ComposedPolicy):
        return "check.first_fault"
    return "episode.run_episode" if engine == "embedded" else "decider._decide_and_check"
