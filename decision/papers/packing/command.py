"""``decision reproduce packing``."""

from decision.cli.command import with_groups
from decision.cli.options import JsonOption, Spread
from decision.papers.command import BudgetOption, Finished, PartsFolder, reproduce_budget


@with_groups
def packing_command(
    budget: BudgetOption = "smoke",
    output: PartsFolder = None,
    *,
    finished: Finished = False,
    spread: Spread,
    as_json: JsonOption = False,
) -> None:
    """Packing for utilization with predicted run times, against chance.

    Heuristics, an upper bound, chance and trained networks on five made pairs of
    WL1 and WL2; tables 4, 5 and 6 of the paper, and its claims counted again; and
    the policy packer, one for all, on twenty. A second run goes on where the
    first was stopped.

    Examples:

      decision reproduce packing

      decision reproduce packing --budget standard -o out/packing
    """
    from decision.rl.learning import require_learning

    require_learning()
    from .runs import PACKING

    reproduce_budget(PACKING.reproduce, "packing", output, budget, finished, spread, as_json)
