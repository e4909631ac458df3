"""``decision reproduce launchpad``."""

from typing import Annotated, Literal

import typer

from decision.cli.command import with_groups
from decision.cli.options import JsonOption, Spread
from decision.papers.command import Finished, PartsFolder, reproduce_budget


@with_groups
def launchpad_command(
    budget: Annotated[
        Literal["smoke", "standard", "steady", "full"],
        typer.Option(
            "--budget",
            help="Number and length of trainings: a minute, hours or days; steady is standard with full power.",
        ),
    ] = "smoke",
    output: PartsFolder = None,
    *,
    finished: Finished = False,
    spread: Spread,
    as_json: JsonOption = False,
) -> None:
    """Launchpad's green datacenter: heuristics, cloning, offline and online learning, claim by claim.

    Values of heuristics, with suspensions and without, and of what was learned
    from them, on 10 to 100 hosts whose power comes and goes; no schedule exceeds
    the bound beside them. Each claim holds, fails or is undecided; figures 3 to 8
    and tables 1 and 2 are made again. A second run goes on where the first was
    stopped.

    Examples:

      decision reproduce launchpad

      decision reproduce launchpad --budget standard -o out/launchpad
    """
    from decision.rl.learning import require_learning

    require_learning()
    from .runs import LAUNCHPAD

    reproduce_budget(LAUNCHPAD.reproduce, "launchpad", output, budget, finished, spread, as_json)
