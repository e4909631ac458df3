"""``decision check-policy``: does a policy keep the rules?"""

from typing import Annotated

import typer

from decision.model.errors import PolicyError

from .options import PolicySettings, read_settings


def check_policy(
    policy: Annotated[str, typer.Argument(help="A name, module:Class or ./file.py:Class.", metavar="POLICY")],
    option: PolicySettings = None,
) -> None:
    """Put a policy through its paces and say which rules it breaks.

    Runs it on small workloads with ties, jobs without walltime, hosts that
    leave and sleep, twice with the same seed.

    Example:

      decision check-policy ./mine.py:Mine
    """
    from decision.drivers.trials import try_policy

    from .progress import announce_compilation
    from .terminal import stdout

    announce_compilation()
    findings = try_policy(policy, read_settings(option))
    if findings:
        raise PolicyError("\n  ".join([f"{policy} breaks {len(findings)} rules:", *findings]))
    stdout().print(f"{policy} keeps the rules", highlight=False)
