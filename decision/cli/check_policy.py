"""``decision check-policy``: does a policy keep the rules?"""

from typing import Annotated

import typer

from .options import PolicySettings, read_settings


def check_policy(
    policy: Annotated[str, typer.Argument(help="A name, module:Class or ./file.py:Class.", metavar="POLICY")],
    option: PolicySettings = None,
) -> None:
    """Put a policy through its paces and say which rule it breaks.

    Example:

      decision check-policy ./mine.py:Mine
    """
    from decision.policies import check_policy as check

    from .terminal import stdout

    check(policy, read_settings(option))
    stdout().print(f"{policy} keeps the rules", highlight=False)
