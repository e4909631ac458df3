"""``decision evaluate`` and ``gates``: learned policies beside others, and whether one may be deployed."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from decision.experiments import Engine
from decision.model.errors import PolicyError
from decision.model.table import Table

from .command import Chosen, refuse_unused
from .declared import Argument, Option
from .options import (
    DEFAULT_DECIDE_LIMIT,
    DaysOption,
    DecideLimitOption,
    EnergyOption,
    EpisodeOptions,
    EventsOption,
    JsonOption,
    PlatformOption,
    SeedOption,
    ShakeOption,
    WorkloadOption,
    read_days,
)

if TYPE_CHECKING:
    from decision.experiments.comparison import EpisodeMeans
    from decision.experiments.inputs import LoadedInputs
    from decision.rl.learning.schedulers import EpisodeComparison

# The three ways of ``decision evaluate``: days or shaken copies, the whole workload once, episodes.


def evaluate_runs(
    case: "LoadedInputs",
    policies: list[str],
    days: tuple[int, int | None] | None,
    shake: int,
    seed: int,
    decide_limit: float,
    output: Path | None,
    simulator: EpisodeOptions,
    as_json: bool,
) -> None:
    """Runs of each day, or of each shaken copy of the whole, under each policy, and what they say."""
    import tempfile

    import numpy as np

    from decision.experiments.compare import judge_plan, read_workloads, run_comparison
    from decision.experiments.comparison import default_metrics
    from decision.experiments.metric_list import METRICS
    from decision.experiments.plan import ComparisonPlan
    from decision.model.computer import available_workers
    from decision.policies.registry import named_policies
    from decision.rl.envs import write_metrics

    from .tables import print_comparison, print_json
    from .terminal import counting

    inputs, called = case.inputs, named_policies(policies)
    plan = ComparisonPlan(
        platform=inputs.platform,
        workloads=inputs.workloads,
        policies=tuple(called),
        specs={name: spec for name, spec in called.items() if name != spec},
        energy=inputs.energy,
        events=inputs.events,
        selection=inputs.selection,
        days=days,
        shake=shake,
        draw=seed,
        decide_limit=decide_limit,
        engines=(Engine(simulator.engine.value),),
        batsim=simulator.batsim or "batsim",
        timeout=simulator.timeout,
    )
    with tempfile.TemporaryDirectory(prefix="decision-") as folder, counting("runs") as show:
        outcomes = run_comparison(plan, Path(folder), processes=available_workers(), progress=show)
    energetic = [METRICS[name] for name in ("energy_waste", "waste_bound", "switches") if inputs.energy]
    metrics = [*default_metrics(outcomes), *energetic]
    if output is not None:
        columns = {
            policy: {m.name: np.array([r.metrics[m.name] for r in outcomes if r.contender == policy]) for m in metrics}
            for policy in plan.policies
        }
        write_metrics(output, columns)
    comparison = judge_plan(plan, outcomes, read_workloads(plan), plan.policies[0], metrics=metrics)
    if as_json:
        print_json(comparison)
    else:
        print_comparison(comparison)


def evaluate_whole(
    case: "LoadedInputs",
    policies: list[str],
    seed: int,
    decide_limit: float,
    output: Path | None,
    simulator: EpisodeOptions,
    as_json: bool,
) -> None:
    """One run of the whole workload under each policy."""
    from decision.experiments.audit import standing_of_tables
    from decision.experiments.inputs import PolicyChoice
    from decision.experiments.run import run_whole
    from decision.policies.registry import named_policies
    from decision.rl.envs import write_metrics

    from .tables import print_json, print_summaries, summary_columns, summary_rows
    from .terminal import working

    summaries, tables = {}, {}
    chosen = named_policies(policies)
    for n, (policy, spec) in enumerate(chosen.items(), 1):
        with working(f"{policy}, {n} of {len(chosen)} policies"):
            choice = PolicyChoice(policy=spec, seed=seed, decide_limit=decide_limit)
            record, summaries[policy] = run_whole(case, choice, simulator.run_engine)
        tables[policy] = record.jobs
    if output is not None:
        write_metrics(output, summary_columns(summaries))
    beside = standing_of_tables(tables, case.workloads[0].nb_res, case.inputs.workloads[0].stem)
    if as_json:
        print_json({"runs": summary_rows(summaries)} | ({"recorded": [beside]} if beside else {}))
    else:
        print_summaries(summaries, beside)


def evaluate_episodes(comparison: "EpisodeComparison", policies: list[str], output: Path | None, as_json: bool) -> None:
    """Episodes under each policy, and the means over them."""
    from decision.experiments.comparison import episode_means, few_episodes
    from decision.policies.registry import named_policies
    from decision.rl.envs import write_metrics

    from .tables import print_json
    from .terminal import note, working

    metrics = {}
    chosen = named_policies(policies)
    for n, (policy, spec) in enumerate(chosen.items(), 1):
        with working(f"{policy}, {n} of {len(chosen)} policies"):
            metrics[policy] = comparison.metrics(spec)
    if output is not None:
        write_metrics(output, metrics)
    if text := few_episodes(metrics, comparison.first, comparison.jobs):
        note(f"warning: {text}")
    estimates, episodes = episode_means(metrics, comparison.first, comparison.jobs), len(comparison.first)
    if as_json:
        rows: list[dict[str, object]] = []
        for policy, means in estimates.items():
            ends = {name: each if episodes > 1 else (each.value, None, None) for name, each in means.items()}
            cells = {name: dict(zip(("mean", "low", "high"), each, strict=True)) for name, each in ends.items()}
            rows.append({"policy": policy, **cells})
        print_json({"episodes": episodes, "policies": rows})
    else:
        print_evaluation(estimates, episodes)


_USUAL = (  # metric, header, scale, whether with its interval
    ("waiting_time", "wait\ns", 1.0, True),
    ("bounded_slowdown", "bounded\nslowdown", 1.0, True),
    ("queue_length", "queue\njobs", 1.0, False),
    ("utilization", "util.\n%", 100.0, False),
    ("job_load", "job load\nMcore s", 1e-6, False),
)
_TAIL = (
    ("p95_wait", "p95 wait\ns", 1.0, False),
    ("p99_wait", "p99 wait\ns", 1.0, False),
    ("max_wait", "max wait\ns", 1.0, False),
    ("late_starts", "late starts\njobs", 1.0, False),
    ("arrival_utilization", "util. until\nlast arrival, %", 100.0, False),
)
_NOTES = """\
mean over the episodes, with its 95 % confidence interval; episodes that share
jobs count together. Late starts: jobs that had not begun at the last arrival"""


def print_evaluation(estimates: "EpisodeMeans", episodes: int) -> None:
    """One row per policy in each of two tables: the usual figures, and what the means do not tell."""
    from .tables import number, print_by_policy

    for columns, caption in ((_USUAL, None), (_TAIL, _NOTES)):
        rows: dict[str, list[str]] = {}
        for policy, means in estimates.items():
            cells = rows[policy] = []
            for name, _, scale, interval in columns:
                value, low, high = (number(scale * each) for each in means[name])
                cells.append(f"{value} ({low} to {high})" if interval and episodes > 1 else value)
        print_by_policy([header for _, header, _, _ in columns], rows, caption)


_episodes_option = partial(Option, panel="Episodes")
_PLACED, _EPISODES_RUN = 1000, 100  # jobs of an episode and episodes, where one of them is given

Policies = Annotated[list[str], Argument(help="Checkpoints, policies as for decision run.", metavar="POLICY...")]
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
Whole = Annotated[bool, Option("--whole", help="Run the workload once, as it is, and count all jobs.")]
MetricsFile = Annotated[
    Path | None, Option("--output", "-o", help="CSV file for the metrics of each episode, or run.", metavar="FILE")
]


def evaluate_command(
    context: click.Context,
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
    simulator: EpisodeOptions,
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

    --engine batsim simulates all of that in a Batsim.

    Examples:

      decision evaluate easy ranking saf+easy -p cluster.xml -w log.swf

      decision evaluate easy learned/dbf.ckpt sjf+easy \\
          -p cluster.xml -w log.swf --select 5000:

      decision evaluate fcfs easy -p cluster.xml -w work.json -o metrics.csv

      decision evaluate learned/inspector.ckpt sjf+easy \\
          -p cluster.xml -w log.swf --placed 128 --offline
    """
    from decision.experiments.audit import RECORDED
    from decision.experiments.inputs import Inputs, load_inputs
    from decision.model.dates import on_days
    from decision.model.errors import ConfigError

    from .tables import print_dropped, warn_of_seen_jobs
    from .terminal import announce_compilation

    in_episodes = offline or episodes is not None or placed is not None
    judged = not (whole or in_episodes or days is not None)
    by_itself = in_episodes or whole
    parts = dict.fromkeys(("episodes", "placed", "offline"), False)
    refuse_unused(context, {"energy": days is not None}, "it needs --days")
    if days is not None:
        refuse_unused(context, {**parts, "whole": False}, "--days runs each day")
    if whole:
        refuse_unused(context, parts, "--whole runs the workload as it is")
    refuse_unused(context, {"shake": judged}, "it is for the whole workload, without --whole")
    refuse_unused(context, {"events": whole or judged}, "it is for the whole workload")
    refuse_unused(context, {"batsim_args": by_itself}, "it needs --whole, --episodes, --placed or --offline")
    batsim = simulator.read()
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
        evaluate_runs(case, policies, alone, shake if judged else 0, seed, decide_limit, output, simulator, as_json)
    elif whole:
        evaluate_whole(case, policies, seed, decide_limit, output, simulator, as_json)
    else:
        from decision.rl.learning import require_learning

        require_learning()
        from decision.rl.learning.schedulers import EpisodeComparison

        comparison = EpisodeComparison(
            case.platform,
            case.workloads[0],
            placed or _PLACED,
            episodes or _EPISODES_RUN,
            seed,
            online=not offline,
            decide_limit=decide_limit,
            engine=batsim,
        )
        evaluate_episodes(comparison, policies, output, as_json)


# ``decision gates``: whether a learned policy may be deployed.

Checkpoint = Annotated[str, Argument(help="Made by decision train; or the name of a learned policy that is shipped.")]


def gates_command(
    context: click.Context,
    checkpoint: Checkpoint,
    platform: PlatformOption,
    workload: WorkloadOption,
    events: EventsOption = None,
    *,
    chosen: Chosen,
    simulator: EpisodeOptions,
    as_json: JsonOption = False,
) -> None:
    """Check whether a checkpoint may be deployed, on a log that it has not seen.

    The log is run on ten copies with shaken submissions. Against FCFS with EASY:
    mean wait and mean bounded slowdown are not above; the longest wait is at most
    1.5 times as long in the median of the copies, and twice as long on any; and
    on a nearly idle machine no job waits that would not wait. And the schedule is the same in a run,
    through Batsim's messages, and on the engine in plain Python. Of a packer,
    which is for utilization, no more room may be idle up to the last end than
    under EASY, in place of the first three.

    A checkpoint for servers that sleep (joint, deepscheduling) runs each day of
    the log, against first-fit with a timeout of 5 minutes on the same servers:
    mean wait at most 1.1 times and longest wait at most 1.5 times as long, and
    neither waste nor switches above.

    A checkpoint that knows what jobs are worth (green, timetable) runs under the
    supply of power of --events, if there is one: it misses no more value than
    density+first-fit,suspend=density and than qos+first-fit, and no more value
    is violated than under FCFS with EASY.

    With --engine batsim a Batsim simulates the log, too, and its schedule must be
    the same, so that what was measured of it holds there. Waits, waste and value
    are measured in the embedded engine all the same: ten copies, and EASY's.

    Writes what it finds into the checkpoint's manifest, with the hashes of
    platform, log and supply; a shipped checkpoint stays as it is. decision run and serve
    refuse a checkpoint that was not checked or fails on one of its logs, unless
    --force is given. Exit codes: 0 if all gates are passed, 2 if not.

    Examples:

      decision gates learned/ranking.ckpt -p cluster.xml -w log.swf

      decision gates learned -p cluster.xml -w log.swf

      decision gates timetable -p ten.xml -w green.json --events supply.txt
    """
    from decision.experiments.gates import check_gates, keep_check, lets_sleep
    from decision.experiments.inputs import Inputs, first_log, load_inputs
    from decision.experiments.run import in_batsim
    from decision.rl.learning import SHIPPED_NAMES, existing_checkpoint
    from decision.rl.learning.checkpoint import require_unseen

    from .tables import number, print_dropped, print_json, print_table
    from .terminal import announce_compilation, note, working

    batsim = simulator.read()
    file = existing_checkpoint(checkpoint)
    selection = chosen.read()
    energy = lets_sleep(file)
    case = load_inputs(
        Inputs(platform=platform, workloads=(workload,), events=tuple(events or ()), selection=selection, energy=energy)
    )
    print_dropped(case.workloads)
    if text := require_unseen(checkpoint, case.workloads[0]):
        note(f"warning: {text}; gates are for jobs that nothing was learned from")
    announce_compilation()
    with working(file.name):
        check = check_gates(file, first_log(case), in_batsim(case, batsim))
    if checkpoint not in SHIPPED_NAMES:
        keep_check(file, check)
    if as_json:
        rows = [{"gate": g.name, "found": g.found, "most": g.most, "passed": g.passed} for g in check.gates]
        print_json({"checkpoint": checkpoint, "jobs": check.jobs, "gates": rows})
    else:
        listed = [(g.name, number(g.found), number(g.most), "yes" if g.passed else "no") for g in check.gates]
        print_table(Table(check.workload.name, ("gate", "found", "at most", "passed"), listed))
    failed = [gate.name for gate in check.gates if not gate.passed]
    if failed:
        raise PolicyError(f"{checkpoint} fails on {workload}: {', '.join(failed)}")
