"""``decision starts``: when the jobs that wait at a moment will start, under any policy."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import click

from decision.model.errors import ConfigError
from decision.model.table import Table

from .command import Chosen, typed_command
from .declared import Argument, Option
from .options import (
    JsonOption,
    PlatformOption,
    PolicyOption,
    SeedOption,
    SettingsOption,
    TimeZoneOption,
    WorkloadOption,
    read_pairs,
)

if TYPE_CHECKING:
    from decision.forecasts.answer import Starts
    from decision.forecasts.cluster import Suggestion

AtOption = Annotated[str, Option("--at", help="The moment: seconds since the log began, or a date.", metavar="TIME")]
RecordedOption = Annotated[
    bool, Option("--recorded", help="Take what ran and waited then from the log, not from the policy.")
]
QuantilesOption = Annotated[
    str, Option("--quantiles", help="Percent of the cases in which a job has started by then.", metavar="P,P,P")
]
BeforeOption = Annotated[
    str | None, Option("--before", help="Say the chance of a start before this time.", metavar="TIME")
]
FuturesOption = Annotated[int, Option("--futures", help="How many futures are simulated.", min=10, max=10_000)]
MomentsOption = Annotated[
    int, Option("--moments", help="Earlier moments of the log by which forecasts are calibrated; 0: none.", min=0)
]
JobOption = Annotated[list[str] | None, Option("--job", help="Only this job; may be repeated.", metavar="ID")]
PageOption = Annotated[
    Path | None, Option("--page", help="Write a page with a bar for each job.", metavar="FILE", dir_okay=False)
]
_SOON = 1.5  # seconds after which a first answer is printed


def starts_command(
    context: click.Context,
    platform: PlatformOption,
    workload: WorkloadOption,
    policy: PolicyOption,
    at: AtOption,
    settings: SettingsOption = None,
    recorded: RecordedOption = False,
    job: JobOption = None,
    quantiles: QuantilesOption = "10,50,90",
    before: BeforeOption = None,
    futures: FuturesOption = 200,
    moments: MomentsOption = 40,
    *,
    chosen: Chosen,
    page: PageOption = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """When will the jobs that wait start? Times with 10, 50 and 90 %.

    Continues the log from the moment on, some hundred times: jobs last as long
    as their users' earlier ones did, given how long they already ran, and others
    come as they came in earlier weeks. Forecasts of earlier moments of the log,
    whose starts are known, widen or move what is said.

    What is in the log after the moment is not looked at.

    Example:

      decision starts -p cluster.xml -w log.swf --policy easy --at 2446831
    """
    from decision.experiments.inputs import Inputs, load_inputs
    from decision.forecasts.log import log_starts
    from decision.model.dates import clock_at_zero, read_moment
    from decision.policies import find_policy

    from .terminal import announce_compilation, counting

    shares = read_quantiles(quantiles)
    case = load_inputs(Inputs(platform=platform, workloads=(workload,), selection=chosen.read()))
    given = case.workloads[0]
    moment = read_moment(at).of(given)
    until = None if before is None else read_moment(before).of(given)
    announce_compilation()
    policy_made = find_policy(policy, read_pairs(settings))
    began = time.perf_counter()

    def first(early: "Starts") -> None:
        if not as_json and time.perf_counter() - began > _SOON:
            print_starts(_of_jobs(early, job), clock_at_zero([given]), title="First answer, of few futures")

    with counting("futures") as show:
        found = log_starts(
            case.platform,
            given,
            policy_made,
            moment,
            as_recorded=recorded,
            quantiles=shares,
            before=until,
            futures=futures,
            moments=moments,
            seed=seed,
            show=show,
            first=first,
        )
    deliver(_of_jobs(found, job), clock_at_zero([given]), as_json, page, typed_command(context))


def read_quantiles(text: str) -> tuple[float, ...]:
    """Shares from percents with commas. Raises ConfigError."""
    try:
        shares = tuple(float(part) / 100 for part in text.split(","))
    except ValueError:
        shares = ()
    if not shares or not all(0 < share < 1 for share in shares) or list(shares) != sorted(set(shares)):
        raise ConfigError(f"--quantiles {text!r}: give percents between 0 and 100, ascending, such as 10,50,90")
    return shares


def _of_jobs(found: "Starts", wanted: Sequence[str] | None) -> "Starts":
    """Only the wanted jobs. Raises ConfigError for one that does not wait."""
    from msgspec.structs import replace

    if not wanted:
        return found
    jobs = [each for each in found.jobs if each.id in wanted or each.id.partition("!")[2] in wanted]
    known = {name for each in jobs for name in (each.id, each.id.partition("!")[2])}
    if missing := [name for name in wanted if name not in known]:
        raise ConfigError(f"job {missing[0]} does not wait at this moment; those that do: decision ... without --job")
    return replace(found, jobs=tuple(jobs))


def deliver(
    found: "Starts",
    zero: float | None,
    as_json: bool,
    page: Path | None,
    command: str,
    again: bool = False,
    **more: Any,
) -> None:
    """Write the page, which is written `again` and again, and print the answer; `more` are parts of the JSON."""
    from .tables import print_json

    if page is not None:
        from decision.report.answers import write_starts_page

        write_starts_page(page, found, zero, command, again)
    if as_json:
        print_json({**found.document(), **more})
    else:
        print_starts(found, zero)


def print_starts(found: "Starts", zero: float | None, title: str = "") -> None:
    """A row for each job that waits, and what is not known."""
    from decision.forecasts.words import clock_words, span

    from .tables import print_table
    from .terminal import note, say

    if not found.jobs:
        say("; ".join(found.notes))
        return
    shares = list(found.jobs[0].by)
    heads = [f"{100 * share:g} % by" for share in shares]
    chance = [] if found.before is None else [f"before {clock_words(found.before, found.at, zero)}"]
    held = any(job.held_by for job in found.jobs)
    headers = ("job", "size", "limit", "waited", *heads, *chance, *(["held by"] if held else []))
    rows = []
    for job in found.jobs:
        row = [job.id.partition("!")[2] or job.id, f"{job.size:,}", span(job.limit), span(found.at - job.submit)]
        row += [clock_words(time_, found.at, zero) for time_ in job.by.values()]
        row += [] if job.chance is None else [f"{100 * job.chance:.0f} %"]
        rows.append([*row, *([job.held_by] if held else [])])
    print_table(Table(title or f"Starts, as seen at {clock_words(found.at, None, zero)}", headers, rows))
    if title:
        return
    by = f"{found.calibrated_by:,} forecasts of earlier moments" if found.calibrated_by else "forecasts of other logs"
    say(f"{found.futures} futures, calibrated by {by}")
    for line in found.notes:
        note(line)
    doubts: dict[str, list[str]] = {}
    for job in found.jobs:
        for line in job.unknown:
            doubts.setdefault(line, []).append(job.id.partition("!")[2] or job.id)
    for line, names in doubts.items():
        shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
        note(f"{line}: {shown}")


# ``decision slurm starts``: the same for a cluster's own Slurm.

QueueOption = Annotated[
    Path | None,
    Option(
        "--queue",
        help="The queue now: what squeue --json, scontrol show job or squeue -o prints; as the case recorded it else.",
        metavar="FILE",
        dir_okay=False,
    ),
]
WhenOption = Annotated[
    str | None, Option("--at", help="The moment, as a date; when the queue was printed by default.", metavar="TIME")
]
SuggestOption = Annotated[bool, Option("--suggest", help="Say what would help each job of --job and --new most.")]
NewOption = Annotated[
    str | None,
    Option("--new", help="A job that is not submitted yet, by options of sbatch.", metavar="'-N 4 -t 2:00:00'"),
]
WatchOption = Annotated[
    float | None,
    Option("--watch", help="Do it again each so many minutes, with the queue file as it then is.", min=0.1),
]


def slurm_starts_command(
    context: click.Context,
    case: Annotated[Path, Argument(help="Folder that decision slurm read made.", metavar="CASE", file_okay=False)],
    queue: QueueOption = None,
    at: WhenOption = None,
    job: JobOption = None,
    new: NewOption = None,
    quantiles: QuantilesOption = "10,50,90",
    before: BeforeOption = None,
    suggest: SuggestOption = False,
    futures: FuturesOption = 200,
    moments: MomentsOption = 20,
    time_zone: TimeZoneOption = None,
    page: PageOption = None,
    watch: WatchOption = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """When will the jobs that wait in your Slurm start? Times with 10, 50 and 90 %.

    CASE has the configuration and the history; the queue is that of now:

      squeue -a -r -t PD,R,S,CG -o "%i|%u|%a|%P|%q|%T|%V|%S|%l|%D|%C|%m|%N|%r|%E|%Q|%M"

    or what squeue -a --json or scontrol show job prints. The model of Slurm
    continues it, some hundred times: jobs last as long as their users' earlier
    ones did, given how long they already ran, and others come as they came in
    earlier weeks. Forecasts of earlier moments of the case widen what is said.

    Examples:

      decision slurm starts CASE --queue squeue.txt --page starts.html

      decision slurm starts CASE --queue squeue.txt --job 4711 --suggest

      decision slurm starts CASE --queue squeue.txt --new "-N 4 -t 2:00:00 -A lab"
    """
    if watch is not None and page is None:
        raise ConfigError("--watch keeps a page up to date: give --page FILE")
    if suggest and not job and new is None:
        raise ConfigError("--suggest is for single jobs: give --job or --new")
    asked = _Asked(case, queue, at, job, new, read_quantiles(quantiles), before, suggest, futures, moments, seed)
    from .terminal import announce_compilation, note

    announce_compilation()
    while True:
        found, suggestions = _slurm_starts(asked, time_zone, quiet=as_json or watch is not None)
        _deliver_slurm(found, suggestions, as_json, page, typed_command(context), watch is not None)
        if watch is None:
            return
        note(f"{page}: again in {watch:g} minutes")
        time.sleep(60 * watch)


class _Asked(NamedTuple):
    case: Path
    queue: Path | None
    at: str | None
    job: list[str] | None
    new: str | None
    shares: tuple[float, ...]
    before: str | None
    suggest: bool
    futures: int
    moments: int
    seed: int


def _slurm_starts(asked: _Asked, time_zone: str | None, quiet: bool) -> "tuple[Starts, dict[str, list[Suggestion]]]":
    """The answer to what was asked, and what would help."""
    from decision.files.accounting.records import named_zone
    from decision.forecasts.cluster import cluster_starts, moment_of, suggest
    from decision.slurm.case import load_case
    from decision.slurm.queue import new_job, read_queue, when

    from .terminal import counting

    case, zone = load_case(asked.case), named_zone(time_zone or "")
    given = None if asked.queue is None else read_queue(asked.queue, case, zone)
    now = when(asked.at, zone, "at") if asked.at else given.at if given else 0
    if not now:
        raise ConfigError("--at is missing: neither the queue nor anything else says which time it was", field="at")
    extra = [new_job(asked.new, now, case)] if asked.new is not None else []
    moment = moment_of(case, now, given, extra)
    wanted = [*(asked.job or ()), *(["new"] if extra else [])]
    until = when(asked.before, zone, "before") if asked.before else None
    began = time.perf_counter()

    def first(early: "Starts") -> None:
        if not quiet and time.perf_counter() - began > _SOON:
            print_starts(_of_jobs(early, wanted), 0.0, title="First answer, of few futures")

    with counting("futures") as show:
        found = cluster_starts(
            moment,
            quantiles=asked.shares,
            before=until,
            futures=asked.futures,
            moments=asked.moments,
            seed=asked.seed,
            only=wanted,
            show=show,
            first=None if quiet else first,
        )
    found = _of_jobs(found, wanted)
    help_ = {name: suggest(moment, name, quantiles=asked.shares, seed=asked.seed) for name in wanted if asked.suggest}
    return found, help_


def _deliver_slurm(
    found: "Starts",
    suggestions: "dict[str, list[Suggestion]]",
    as_json: bool,
    page: Path | None,
    command: str,
    again: bool,
) -> None:

    from decision.forecasts.words import clock_words

    from .terminal import say

    lines = {}
    for name, each in suggestions.items():
        lines[name] = [
            {"options": one.options, "ends_in_time": one.ends_in_time}
            | {"starts_in": {f"{share:g}": when_ - found.at for share, when_ in one.job.by.items()}}
            for one in each
        ]
    deliver(found, 0.0, as_json, page, command, again, **({"suggestions": lines} if suggestions else {}))
    if as_json:
        return
    for name, each in suggestions.items():
        if not each:
            say(f"{name}: nothing that was tried starts it a tenth sooner (limit, nodes, partition)")
        for one in each:
            low, *_, high = (*one.job.by.values(), list(one.job.by.values())[-1])
            risk = (
                "" if one.ends_in_time is None else f"; it ends in time in {100 * one.ends_in_time:.0f} % of the cases"
            )
            when_ = " to ".join(clock_words(each_, found.at, 0.0) for each_ in (low, high))
            say(f"{name} with {one.options}: {when_}{risk}")
