"""``decision evaluate``: what is learned and policies side by side, in episodes or over whole workloads."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from .command import refuse_unused
from .evaluations import evaluate_episodes, evaluate_runs, evaluate_whole
from .grouped import Chosen, with_groups
from .options import (
    DEFAULT_DECIDE_LIMIT,
    DaysOption,
    DecideLimitOption,
    EnergyOption,
    EventsOption,
    JsonOption,
    PlatformOption,
    SeedOption,
    ShakeOption,
    WorkloadOption,
)
from .readers import read_days

_episodes_option = partial(typer.Option, rich_help_panel="Episodes")
_PLACED, _EPISODES_RUN = 1000, 100  # jobs of an episode and episodes, where one of them is given

Policies = Annotated[list[str], typer.Argument(help="Checkpoints, policies as for decision run.", metavar="POLICY...")]
Episodes = Annotated[
    int | None,
    _episodes_option(
        "--episodes", help="Run so many episodes in place of the whole workload; 100 with --placed or --offline.", min=1
    ),
]
Placed = Annotated[
    int | None, _episodes_option("--placed", help="Number of jobs that an episode places.", min=1, show_default="1000")
]
Offline = Annotated[bool, _episodes_option("--offline", help="Submit only the jobs that the episode places.")]
Whole = Annotated[bool, typer.Option("--whole", help="Run the workload once, as it is, and count all jobs.")]
MetricsFile = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="CSV file for the metrics of each episode, or run.", metavar="FILE"),
]


@with_groups
def evaluate_command(
    context: typer.Context,
    policies: Policies,
    platform: PlatformOption,
    workload: WorkloadOption,
    shake: ShakeOption = 10,
    episodes: Episodes = None,
    placed: Placed = None,
    seed: SeedOption = 0,
    offline: Offline = False,
    whole: Whole = False,
    decide_limit: DecideLimitOption = DEFAULT_DECIDE_LIMIT,
    output: MetricsFile = None,
    *,
    chosen: Chosen,
    days: DaysOption = None,
    energy: EnergyOption = False,
    events: EventsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare learned policies with heuristics on the same jobs.

    Each policy runs the whole workload on ten shaken copies, as decision compare
    does, which keeps finished runs, has more figures and writes a page; the first
    policy is the baseline. --whole runs the workload once, as it is, with the
    figures of decision run, and --days each day alone.

    With --episodes parts are run in place of the whole: an episode begins at a
    random job and ends when --placed jobs have been placed; the last job is
    followed by the first again. Metrics are those of Wang, Harwood and Rodriguez
    (HPCC 2022), averages over time, the mean bounded slowdown of the placed
    jobs, and the longest waits, of jobs that still wait, too. An episode begins
    with idle hosts and leaves the queue's rest behind, so that policies that let
    large jobs wait look well.

    Examples:

      decision evaluate easy ranking saf+easy -p cluster.xml -w log.swf

      decision evaluate easy learned/dbf.ckpt sjf+easy \\
          -p cluster.xml -w log.swf --select 5000:

      decision evaluate fcfs easy -p cluster.xml -w work.json -o metrics.csv

      decision evaluate learned/inspector.ckpt sjf+easy \\
          -p cluster.xml -w log.swf --placed 128 --offline
    """
    from decision.analysis.recorded import RECORDED
    from decision.model.dates import on_days
    from decision.model.errors import ConfigError
    from decision.runs.inputs import Inputs, load_inputs

    from .progress import announce_compilation
    from .tables import print_dropped, warn_of_seen_jobs

    in_episodes = offline or episodes is not None or placed is not None
    judged = not (whole or in_episodes or days is not None)
    _refuse_others(context, days is not None, whole, judged)
    inputs = Inputs(
        platform=platform, workloads=(workload,), events=tuple(events or ()), selection=chosen.read(), energy=energy
    )
    case = load_inputs(inputs)
    print_dropped(case.workloads)
    alone = read_days(days)
    if RECORDED in policies and in_episodes:
        raise ConfigError(f"{RECORDED}: nothing is simulated, so there are no episodes; leave them out", field="policy")
    warn_of_seen_jobs(policies, [on_days(w, slice(*alone)) for w in case.workloads] if alone else case.workloads)
    announce_compilation()
    if alone is not None or judged:
        evaluate_runs(case, policies, alone, shake if judged else 0, seed, decide_limit, output, as_json)
    elif whole:
        evaluate_whole(case, policies, seed, decide_limit, output, as_json)
    else:
        from decision.learn import require_learning

        require_learning()
        from decision.learn.schedulers import EpisodeComparison

        comparison = EpisodeComparison(
            case.platform,
            case.workloads[0],
            placed or _PLACED,
            episodes or _EPISODES_RUN,
            seed,
            online=not offline,
            decide_limit=decide_limit,
        )
        evaluate_episodes(comparison, policies, output, as_json)


def _refuse_others(context: typer.Context, by_day: bool, whole: bool, judged: bool) -> None:
    """Refuse options that are not for what is evaluated: days, the whole workload once or on copies, or episodes."""
    refuse_unused(context, {"energy": by_day}, "it needs --days")
    parts = dict.fromkeys(("episodes", "placed", "offline"), False)
    if by_day:
        refuse_unused(context, {**parts, "whole": False}, "--days runs each day")
    if whole:
        refuse_unused(context, parts, "--whole runs the workload as it is")
    refuse_unused(context, {"shake": judged}, "it is for the whole workload, without --whole")
    refuse_unused(context, {"events": whole or judged}, "it is for the whole workload")
