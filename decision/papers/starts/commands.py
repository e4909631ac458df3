"""``decision reproduce starts``: forecasts of starts beside what happened, and beside those that others make."""

from pathlib import Path
from typing import Annotated

from decision.cli.command import Chosen
from decision.cli.declared import Argument, Option
from decision.cli.options import JsonOption
from decision.papers.commands import reproduce

Logs = Annotated[
    list[Path],
    Argument(
        help="Logs of any known format, cases of decision slurm read, and recordings of a Slurm (folders with "
        "slurm.conf and sacct.txt; cycles.txt.xz says what backfill planned).",
        metavar="LOG...",
        exists=True,
    ),
]
Policy = Annotated[str, Option("--policy", help="The policy of logs that are no Slurm's.", metavar="POLICY")]
Hosts = Annotated[int | None, Option("--hosts", help="Hosts of such a log; as many as it says.", min=1)]
Recorded = Annotated[
    bool, Option("--recorded", help="Judge by the starts that logs recorded; by those under the policy else.")
]
Moments = Annotated[int, Option("--moments", help="Moments of each log that are judged.", min=5)]
Futures = Annotated[int, Option("--futures", help="Futures of each moment.", min=10)]
Folder = Annotated[Path, Option("--output", "-o", help="Folder of table.md and pictures.", metavar="FOLDER")]


def judge_starts_command(
    logs: Logs,
    policy: Policy = "easy",
    hosts: Hosts = None,
    recorded: Recorded = False,
    moments: Moments = 200,
    futures: Futures = 100,
    output: Folder = Path("out/starts"),
    *,
    chosen: Chosen,
    as_json: JsonOption = False,
) -> None:
    """How good forecasts of starts are, beside those that others make.

    At moments of each log, every job that waits is forecast from what was known
    then: by futures (decision starts, decision slurm starts), by limits alone,
    by Slurm's own plan where its log has it, by the waits of like jobs in the
    last four weeks, and by gradient boosting (needs scikit-learn). A quarter as
    many moments come before those that are judged, to calibrate. What is finished
    of a log is kept, so that a second run goes on with the next one.

    Example:

      decision reproduce starts log.swf --policy easy -o out/starts
    """
    from .runs import LogAsked, reproduce_starts

    asked = [
        LogAsked(
            path=log,
            policy=policy,
            hosts=hosts,
            as_recorded=recorded,
            selection=chosen.read(),
            moments=moments,
            futures=futures,
        )
        for log in logs
    ]
    reproduce(
        "starts",
        output,
        lambda parts: reproduce_starts(asked, parts.folder, parts.progress),
        as_json,
        counted="moments",
    )
