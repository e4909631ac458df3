"""Comparisons of policies, learned ones among them; and which policy suits a log."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from decision.model.errors import ConfigError, DecisionError, a_path, amount, flag, mapping
from decision.model.errors import whole as count
from decision.model.platform import Platform
from decision.model.workload import Workload

from . import given
from .given import Source
from .results import ComparisonResult, as_table

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from pandas import DataFrame

    from decision.batsim.episodes import BatsimForEpisodes
    from decision.experiments.advise import Advice
    from decision.experiments.own_metrics import OwnFunction
    from decision.experiments.statistics import Estimate
    from decision.model.reshape import Walltimes
    from decision.policies import Policy


def compare(
    platform: Platform | Source,
    workload: "Workload | DataFrame | Source | Sequence[Workload | DataFrame | Source]",
    policies: "str | Policy | Sequence[str | Policy] | Mapping[str, str | Policy]",
    *,
    baseline: "str | Policy | None" = None,
    metrics: "Sequence[str | OwnFunction] | str | OwnFunction" = (),
    options: Mapping[str, Any] | None = None,
    energy: bool = False,
    jobs: slice | None = None,
    nodes: int | None = None,
    walltime: "Walltimes" = "requested",
    missing_walltime: str = "none",
    time_field: int | None = None,
    time_zone: str | None = None,
    shake: int = 10,
    whole: bool = False,
    windows: int = 0,
    length: int = 1024,
    draw: int = 0,
    seeds: int = 1,
    processes: int = 1,
    folder: Source | None = None,
    engine: str = "embedded",
    batsim: str | None = None,
) -> ComparisonResult:
    """Run policies over the same jobs and compare them with a baseline, metric by metric.

    Args:
        platform: as of `simulate`.
        workload: as of `simulate`; of several, each is compared by itself.
        policies: what is compared, each a name as ``decision run --policy`` takes it, or the policy itself; by the
            names that tables and pictures shall have, in a dict, or else each by its attribute ``name``, or its class.
        baseline: the policy that the others are compared with; the first if None.
        metrics: names (`decision.report` says how each is computed, and has the default in `DEFAULT_METRICS`), and
            functions of one's own, or where they are (``"./mine.py:f"``): ``f(jobs, hosts)`` gives a number from the
            frame of the jobs that ran, as `SimulationResult.jobs` has them, and the number of hosts. Its name is the
            metric's, the first line of its docstring what tables say of it; ``f.unit``, ``f.better = "higher"``,
            ``f.least`` and ``f.most`` say the rest. Of whole workloads it is computed of the jobs that count, and
            without each block of time.
        options: options of every policy.
        energy: simulate power states and energy.
        jobs: which jobs of each workload are used, ``slice(0, 5000)``, in order of submission; all if None.
        nodes: larger jobs are left out.
        walltime: ``requested``, ``runtime`` (perfect estimates) or ``none``.
        missing_walltime: of a log's jobs without a requested time: ``none``, ``runtime``, ``longest`` or a model.
        time_field: the field of logs that holds the requested time, counted from 1; the standard's if None.
        time_zone: of a log's local times, such as ``Europe/Berlin``; UTC if None.
        shake: copies of each whole workload with shaken submissions, on which it is judged.
        whole: run each workload once, as it is, and count all jobs.
        windows: random sequences of jobs of each workload, in place of the whole.
        length: jobs in a window.
        draw: seed of the windows and of the bootstrap.
        seeds: runs of each policy on each window, for policies that draw at random.
        processes: runs at a time, of named policies. With more than 1, protect a script's entry:
            ``if __name__ == "__main__":``.
        folder: keeps finished runs of named policies, so that a later call with more of them runs only what is new.
        engine: ``embedded``, or ``batsim``, which runs a Batsim.
        batsim: Batsim's executable, for ``batsim``; by default the command ``batsim``.

    Raises:
        ConfigError: if something cannot be read, does not fit together or makes no sense.
        PolicyError: if a policy decides something impossible.

    Examples:
        >>> import decision as d
        >>> class Widest:
        ...     def reset(self, platform, seed): pass
        ...     def decide(self, cluster, plan):
        ...         for job in sorted(cluster.queue, key=lambda job: -job.size):
        ...             if job.size > plan.nb_free:
        ...                 break
        ...             plan.start(job)
        >>> result = d.compare("toy", "toy", ["easy", Widest()], metrics=["makespan"], whole=True)
        >>> result.table[["policy", "estimate"]].values.tolist()
        [['easy', 8.0], ['Widest', 12.0]]
    """
    from decision.experiments import Engine
    from decision.experiments.compare import describe_setup, judge_plan, read_workloads, run_comparison
    from decision.experiments.plan import ComparisonPlan, find_baseline

    external = _engine(engine, batsim, "")
    named = given.name_policies(policies)
    objects = {name: policy for name, policy in named.items() if not isinstance(policy, str)}
    energy, processes = flag("energy", energy), count("processes", processes, 1)
    kept = None if folder is None else a_path("folder", folder)
    _refuse_own(objects, processes, kept)
    chosen, of_ones_own = given.read_metrics(metrics)
    _refuse_own({each.name: each for each in of_ones_own if each.function}, processes, kept, "metric")
    with tempfile.TemporaryDirectory(prefix="decision-") as temporary:
        written = Path(temporary)
        plan = ComparisonPlan(
            platform=given.platform_file(platform, energy, written),
            workloads=given.as_files(workload, written),
            policies=tuple(named),
            specs={name: policy for name, policy in named.items() if isinstance(policy, str) and name != policy},
            own=objects,
            own_metrics=tuple(of_ones_own),
            settings=given.as_options(options, list(named.values())),
            energy=energy,
            selection=given.as_selection(jobs, nodes, walltime, time_field, missing_walltime, time_zone),
            shake=0 if flag("whole", whole) or windows else count("shake", shake, 1),
            windows=count("windows", windows),
            length=count("length", length, 1),
            draw=count("draw", draw),
            seeds=count("seeds", seeds, 1),
            engines=(Engine(engine),),
            batsim="batsim" if external is None else external.command,
        )
        asked = next((name for name, policy in objects.items() if policy is baseline), baseline)
        if asked is not None and not isinstance(asked, str):
            raise ConfigError(f"baseline: must be one of the policies; found {baseline!r}", field="baseline")
        against = find_baseline(plan, asked)
        logs = read_workloads(plan)
        setup = {name: text.replace(f"{written}/", "") for name, text in describe_setup(plan, logs).items()}
        with _unplaced(written):
            outcomes = run_comparison(plan, kept or written, processes=processes)
        return ComparisonResult(judge_plan(plan, outcomes, logs, against, metrics=chosen, setup=setup))


def intervals(
    values: "ArrayLike",
    *,
    statistic: Literal["mean", "interquartile mean"] = "mean",
    independent: bool = False,
    first: "ArrayLike | None" = None,
    length: int = 1,
    jobs: int | None = None,
    seed: int = 0,
) -> "Estimate":
    """The mean of numbers of one's own, with a 95 % interval by the package's block bootstrap.

    Values are a series, in the order of time: neighbours are alike, and are drawn together, in blocks whose length
    follows from the values (Politis and White 2004, `decision.experiments.statistics`).

    Args:
        values: (n,) of windows, days or jobs of a log; four at least. For a difference of two policies, theirs.
        statistic: the mean, or that of what is left without the lowest and the highest quarter.
        independent: whether values share nothing, as those of seeds do: each is drawn by itself.
        first: (n,) where windows begin, number of their first jobs, where these may share jobs; in order if None.
        length: with `first`, jobs in a window.
        jobs: with `first`, of the log; up to the last window's end if None.
        seed: of the bootstrap.

    Returns:
        ``value``, ``low`` and ``high``.

    Raises:
        ConfigError: if these are no such numbers.

    Examples:
        >>> import decision as d
        >>> waits = d.simulate("cluster256", "lublin_256", "easy", jobs=slice(0, 200)).jobs.waiting_time
        >>> found = d.intervals(waits)
        >>> found.low < found.value < found.high
        True
    """
    import numpy as np

    from decision.experiments.statistics import Windows, bootstrap_mean, interquartile_mean

    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        numbers = np.zeros((0, 0))
    if numbers.ndim != 1 or len(numbers) < 4 or not np.isfinite(numbers).all():
        raise ConfigError("values: must be a list of four finite numbers or more", field="values")
    known = {"mean": bootstrap_mean, "interquartile mean": interquartile_mean}
    if statistic not in known:
        raise ConfigError(f"statistic: must be {' or '.join(known)}; found {statistic!r}", field="statistic")
    places = np.arange(len(numbers)) if first is None else np.asarray(first, np.int64)
    if places.shape != numbers.shape:
        raise ConfigError(f"first: must be as many as values, {len(numbers)}; found {places.shape}", field="first")
    long = count("length", length, 1)
    end = int(places.max()) + long if jobs is None else count("jobs", jobs, int(places.max()) + long)
    where = None if flag("independent", independent) else [Windows(places, long, end)]
    return known[statistic](numbers[:, None], np.random.default_rng(count("seed", seed)), where)


@contextmanager
def _unplaced(folder: Path) -> Iterator[None]:
    """Let errors name files in a folder of ours by their names alone."""
    try:
        yield
    except DecisionError as error:
        error.args = (str(error).replace(f"{folder}/", ""),)
        raise


def _engine(engine: str, batsim: str | None, arguments: str) -> "BatsimForEpisodes | None":
    """The Batsim that is asked for; None for the embedded engine. Raises ConfigError."""
    if engine == "embedded" and batsim is None and not arguments:
        return None
    from decision.batsim.episodes import engine_of

    return engine_of(engine, batsim, arguments)


def _refuse_own(own: Mapping[str, Any], processes: int, folder: Path | None, what: str = "policy") -> None:
    """Refuse objects where only a policy's or a metric's name will do. Raises ConfigError."""
    advice = f"name the {what} (module:{'Class' if what == 'policy' else 'f'} or ./file.py:...)"
    for name in own:
        if processes > 1:
            raise ConfigError(f"processes: {name} is an object of this process; take 1, or {advice}", field="processes")
        if folder is not None:
            reason = f"runs of {name}, an object, would not be known again"
            raise ConfigError(f"folder: {reason}; leave it out, or {advice}", field="folder")


def evaluate(
    platform: Platform | Source,
    workload: "Workload | DataFrame | Source",
    policies: "str | Policy | Sequence[str | Policy] | Mapping[str, str | Policy]",
    *,
    shake: int = 10,
    episodes: int | None = None,
    placed: int = 1000,
    offline: bool = False,
    whole: bool = False,
    jobs: slice | None = None,
    nodes: int | None = None,
    walltime: "Walltimes" = "requested",
    missing_walltime: str = "none",
    time_field: int | None = None,
    time_zone: str | None = None,
    seed: int = 0,
    engine: str = "embedded",
    batsim: str | None = None,
    batsim_args: str = "",
) -> "DataFrame | list[dict[str, Any]]":
    """Compare learned policies with heuristics on the same jobs, as ``decision evaluate`` does.

    The whole workload is run on shaken copies, as by `decision.compare`, the first policy being the baseline; or
    episodes are run: one begins at a random job of the workload and ends when `placed` jobs have been placed; the last
    job is followed by the first again.

    Args:
        platform: as of `decision.simulate`.
        workload: as of `decision.simulate`; all jobs need a walltime.
        policies: checkpoints, names of policies, or policies themselves.
        shake: copies of the whole workload with shaken submissions.
        episodes: how many are run in place of the whole workload.
        placed: jobs whose placement ends an episode.
        offline: no other jobs arrive in an episode than those that are placed.
        whole: run the workload once, as it is.
        jobs: which jobs of the workload are used, ``slice(0, 5000)``, in order of submission; all if None.
        nodes: larger jobs are left out.
        walltime: ``requested``, ``runtime`` (perfect estimates) or ``none``.
        missing_walltime: of a log's jobs without a requested time: ``none``, ``runtime``, ``longest`` or a model.
        time_field: the field of logs that holds the requested time, counted from 1; the standard's if None.
        time_zone: of a log's local times, such as ``Europe/Berlin``; UTC if None.
        seed: of the episodes' first jobs, and of policies that draw at random.
        engine: ``embedded``, or ``batsim`` or ``docker``, which simulate all of this in a Batsim (shaken copies not in
            ``docker``).
        batsim: Batsim's executable, for ``batsim``; by default the command ``batsim``.
        batsim_args: more of its options, in one text; not for shaken copies.

    Returns:
        The ``table`` of `decision.compare`'s result; of episodes, a row per policy and episode with the columns
        ``policy``, ``episode`` and those of `decision.rl.envs.EPISODE_METRICS`; of a workload that is run once, a row
        per policy with the fields of `Summary`. A pandas DataFrame, or a list of dicts without pandas.

    Raises:
        ConfigError: if the inputs do not fit together, or episodes are asked for and PyTorch is not installed.
        PolicyError: if a policy decides something impossible.

    Examples:
        >>> import decision as d
        >>> table = d.evaluate("cluster256", "lublin_256", ["easy", "fcfs"], episodes=2, placed=50)
        >>> table.groupby("policy").episode.count().to_dict()
        {'easy': 2, 'fcfs': 2}
    """
    named = given.name_policies(policies)
    selection = given.as_selection(jobs, nodes, walltime, time_field, missing_walltime, time_zone)
    seed, placed = count("seed", seed), count("placed", placed, 1)
    external = _engine(engine, batsim, batsim_args)
    offline, whole = flag("offline", offline), flag("whole", whole)
    hosts = given.read_platform(platform, False)
    logs = given.as_workloads(workload, selection, hosts)
    if len(logs) > 1:
        raise ConfigError("workload: give one; several are evaluated one after the other", field="workload")
    if offline and episodes is None:
        raise ConfigError("offline: it is for episodes; give their number, too", field="offline")
    if episodes is None and not whole:
        if batsim_args:
            raise ConfigError("batsim_args: it needs whole or episodes", field="batsim_args")
        kept: dict[str, Any] = {"engine": engine, "batsim": batsim}
        kept |= {"jobs": jobs, "nodes": nodes, "walltime": walltime, "missing_walltime": missing_walltime}
        kept |= {"time_field": time_field, "time_zone": time_zone}
        return compare(platform, workload, policies, shake=shake, **kept).table
    if whole and external is not None:
        return as_table(_whole_runs_in_batsim(named, platform, workload, selection, seed, external))
    if whole:
        from .simulations import simulate

        runs = {name: simulate(hosts, logs, policy, seed=seed).summary() for name, policy in named.items()}
        return as_table([{"policy": name, **msgspec.structs.asdict(each)} for name, each in runs.items()])
    from decision.rl.learning import require_learning

    require_learning()
    from decision.rl.learning.schedulers import EpisodeComparison

    episodes = count("episodes", episodes, 1)
    episodic = EpisodeComparison(hosts, logs[0], placed, episodes, seed, online=not offline, engine=external)
    rows = []
    for name, policy in named.items():
        columns = {metric: values.tolist() for metric, values in episodic.metrics(policy).items()}
        rows += [
            {"policy": name, "episode": k, **{metric: values[k] for metric, values in columns.items()}}
            for k in range(episodes)
        ]
    return as_table(rows)


def _whole_runs_in_batsim(
    named: "Mapping[str, str | Policy]",
    platform: Any,
    workload: Any,
    selection: Any,
    seed: int,
    batsim: "BatsimForEpisodes",
) -> list[dict[str, Any]]:
    """A row for each policy, of its run of the whole workload in a Batsim."""
    from decision.experiments.inputs import Inputs, PolicyChoice, load_inputs
    from decision.experiments.run import real_batsim, run_whole

    rows = []
    with tempfile.TemporaryDirectory(prefix="decision-") as temporary:
        written = Path(temporary)
        hosts, files = given.platform_file(platform, False, written), given.as_files(workload, written)
        case = load_inputs(Inputs(platform=hosts, workloads=files, selection=selection))
        for name, policy in named.items():
            spec, own = (policy, None) if isinstance(policy, str) else (name, policy)
            with _unplaced(written):
                choice = PolicyChoice(policy=spec, seed=seed, own=own)
                _, summary = run_whole(case, choice, real_batsim(batsim))
            rows.append({"policy": name, **msgspec.structs.asdict(summary)})
    return rows


def advise(
    workload: Source,
    platform: Source | None = None,
    *,
    hosts: int | None = None,
    baseline: str = "easy",
    longest_wait: float = 1.5,
    weights: Mapping[str, float] | None = None,
    policies: Sequence[str] = (),
    jobs: slice | None = None,
    time_field: int | None = None,
    time_zone: str | None = None,
    shake: int = 10,
    processes: int = 1,
    folder: Source | None = None,
) -> "Advice":
    """Find the policy that suits a log, as ``decision advise`` does.

    Args:
        workload: a log's file, or a shipped workload's name.
        platform: the file of the hosts, or a shipped platform's name; if None, a flat machine.
        hosts: of the flat machine; as many as the log says if None.
        baseline: what runs now.
        longest_wait: the longest wait may be so many times the baseline's; 1 at least.
        weights: how much less ``wait`` and less ``slowdown`` count; 1 each if None: slowdown decides among policies
            whose mean waits are within 3 % times its weight over that of wait.
        policies: further ones to try.
        jobs: which jobs are used, ``slice(0, 5000)``, in order of submission; all if None.
        time_field: the field of logs that holds the requested time, counted from 1; the standard's if None.
        time_zone: of a log's local times, such as ``Europe/Berlin``; UTC if None.
        shake: copies of the log with shaken submissions.
        processes: how many run at a time.
        folder: where finished runs are kept; nowhere if None.

    Returns:
        The advice: ``policy``, ``baseline``, ``change`` (by metric: estimate and 95 % interval, -0.2 is a fifth less),
        ``rows`` (at most eight policies), ``cannot`` (what this log cannot say), ``not_simulated`` (what the log says
        besides: `what`, `jobs`, `share` of the host-seconds, `job_share`, and `text()`), ``better`` (the commands that
        simulate these), ``sentence``.

    Raises:
        ConfigError: if something cannot be read, does not fit together or makes no sense.

    Examples:
        >>> import decision as d
        >>> d.advise("toy", "toy", shake=2).baseline
        'easy'
    """
    from decision.experiments.advise import Wish, find_advice
    from decision.experiments.whole import Log
    from decision.model.computer import find_platform, find_workload

    if platform is not None and hosts is not None:
        raise ConfigError("hosts: give a platform or a number of hosts, not both", field="hosts")
    log = Log(
        workload=find_workload(workload),
        platform=None if platform is None else find_platform(platform),
        hosts=0 if hosts is None else count("hosts", hosts, least=1),
        selection=given.as_selection(jobs, None, "requested", time_field, "runtime", time_zone),
    )
    wish = Wish(
        baseline=baseline,
        longest_wait=amount("longest_wait", longest_wait, 1.0, 1e6),
        weights=mapping("weights", weights, '{"wait": 1}') or {"wait": 1.0, "slowdown": 1.0},
        policies=(policies,) if isinstance(policies, str) else tuple(policies),
        copies=count("shake", shake, least=1),
    )
    with tempfile.TemporaryDirectory(prefix="decision-") as temporary:
        kept = Path(temporary) if folder is None else a_path("folder", folder)
        return find_advice(log, wish, kept, processes=count("processes", processes, least=1))
