"""``decision reproduce grid5000-2016``."""

from pathlib import Path

from decision.cli.options import JsonOption
from decision.papers.command import Data, reproduce


def grid5000_2016_command(data: Data = Path(), as_json: JsonOption = False) -> None:
    """What OAR did on 32 hosts of Grid'5000, and the errors of simulations.

    Example:

      decision reproduce grid5000-2016 --data data/grid5000-2016
    """
    from .runs import reproduce_grid5000

    reproduce("parts", lambda progress: reproduce_grid5000(data), as_json)
