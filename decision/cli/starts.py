"""``decision starts``: when the jobs that wait at a moment will start, under any policy."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from decision.model.errors import ConfigError

from .command import Chosen, typed_command, with_groups
from .options import (
    JsonOption,
    PlatformOption,
    PolicyOption,
    SeedOption,
    SettingsOption,
    WorkloadOption,
    read_pairs,
)

if TYPE_CHECKING:
    from decision.starts.answer import Starts

AtOption = Annotated[
    str, typer.Option("--at", help="The moment: seconds since the log began, or a date.", metavar="TIME")
]
RecordedOption = Annotated[
    bool, typer.Option("--recorded", help="Take what ran and waited then from the log, not from the policy.")
]
QuantilesOption = Annotated[
    str, typer.Option("--quantiles", help="Percent of the cases in which a job has started by then.", metavar="P,P,P")
]
BeforeOption = Annotated[
    str | None, typer.Option("--before", help="Say the chance of a start before this time.", metavar="TIME")
]
FuturesOption = Annotated[int, typer.Option("--futures", help="How many futures are simulated.", min=10, max=10_000)]
MomentsOption = Annotated[
    int,
    typer.Option("--moments", help="Earlier moments of the log by which forecasts are calibrated; 0: none.", min=0),
]
JobOption = Annotated[
    list[str] | None, typer.Option("--job", help="Only this job; may be repeated.", metavar="ID")
]
PageOption = Annotated[
    Path | None, typer.Option("--page", help="Write a page with a bar for each job.", metavar="FILE", dir_okay=False)
]
_SOON = 1.5  # seconds after which a first answer is printed


@with_groups
def starts_command(
    context: typer.Context,
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
    from decision.model.dates import clock_at_zero, read_moment
    from decision.policies import find_policy
    from decision.starts.log import log_starts

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


def deliver(found: "Starts", zero: float | None, as_json: bool, page: Path | None, command: str, **more: Any) -> None:
    """Write the page, and print the answer as text or JSON; `more` are parts of the JSON."""
    from .tables import print_json

    if page is not None:
        from decision.report.starts import write_starts_page

        write_starts_page(page, found, zero, command)
    if as_json:
        print_json({**found.document(), **more})
    else:
        print_starts(found, zero)


def print_starts(found: "Starts", zero: float | None, title: str = "") -> None:
    """A row for each job that waits, and what is not known."""
    from decision.starts.words import clock, span

    from .tables import simple_table
    from .terminal import note, say, stdout

    if not found.jobs:
        say("; ".join(found.notes))
        return
    shares = list(found.jobs[0].by)
    heads = [f"{100 * share:g} % by" for share in shares]
    chance = [] if found.before is None else [f"before {clock(found.before, found.at, zero)}"]
    held = any(job.held_by for job in found.jobs)
    headers = ("job", "size", "limit", "waited", *heads, *chance, *(["held by"] if held else []))
    table = simple_table(*headers, title=title or f"Starts, as seen at {clock(found.at, None, zero)}")
    for job in found.jobs:
        row = [job.id.partition("!")[2] or job.id, f"{job.size:,}", span(job.limit), span(found.at - job.submit)]
        row += [clock(time_, found.at, zero) for time_ in job.by.values()]
        row += [] if job.chance is None else [f"{100 * job.chance:.0f} %"]
        table.add_row(*row, *([job.held_by] if held else []))
    stdout().print(table)
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
