"""``decision replay``: a policy against a recorded session, without a Batsim."""

from pathlib import Path
from typing import Annotated

import typer

from .options import PolicyOption, PolicySettings, SeedOption, read_settings


def replay(
    session: Annotated[Path, typer.Argument(help="A recording of decision serve --record.", metavar="SESSION.jsonl")],
    policy: PolicyOption,
    option: PolicySettings = None,
    seed: SeedOption = 0,
) -> None:
    """Feed a recorded session to a policy and compare what it decides.

    Stops where they first differ: from there on the recording cannot say what
    would have happened.

    Example:

      decision replay session.jsonl --policy easy
    """
    from decision.drivers.agents import make_agent
    from decision.drivers.replay import replay as replay_session

    from .tables import print_replay

    print_replay(replay_session(session, make_agent(policy, read_settings(option), seed=seed)))
