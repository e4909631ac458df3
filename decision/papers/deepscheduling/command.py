"""``decision reproduce deepscheduling``."""

from decision.cli.command import with_groups
from decision.cli.options import JsonOption, Spread
from decision.papers.command import BudgetOption, Finished, PartsFolder, reproduce_budget


@with_groups
def deepscheduling_command(
    budget: BudgetOption = "smoke",
    output: PartsFolder = None,
    *,
    finished: Finished = False,
    spread: Spread,
    as_json: JsonOption = False,
) -> None:
    """DeepScheduling on servers that sleep, against rules, claim by claim.

    Days like those of orion, graphite and econome; trained networks, First-Fit,
    EASY and SAF as the authors have them, and a grid of rules (order, packing,
    patience, timeout); each claim of the paper with its number on held-out days,
    and its figures 2 to 4. A second run goes on where the first was stopped.

    Examples:

      decision reproduce deepscheduling

      decision reproduce deepscheduling --budget standard -o out/deepscheduling
    """
    from decision.rl.learning import require_learning

    require_learning()
    from .runs import DEEPSCHEDULING

    reproduce_budget(DEEPSCHEDULING.reproduce, "deepscheduling", output, budget, finished, spread, as_json)
