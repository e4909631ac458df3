"""``decision reproduce rlscheduler-table``."""

from pathlib import Path

from decision.cli.command import with_groups
from decision.cli.options import JsonOption, Spread
from decision.papers.command import Data, PartsFolder, parts_in, reproduce


@with_groups
def rlscheduler_table_command(
    data: Data = Path(), output: PartsFolder = None, *, spread: Spread, as_json: JsonOption = False
) -> None:
    """RLScheduler's table of bounded slowdowns, by its simulator's rules and by the usual ones.

    Example:

      decision reproduce rlscheduler-table --data data
    """
    from .runs import reproduce_rlscheduler

    reproduce(
        "parts",
        lambda how, progress: reproduce_rlscheduler(data, parts_in(output, "rlscheduler", how, progress)),
        as_json,
        spread,
    )
