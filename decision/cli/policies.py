"""``decision policies``: what can be run, and whether a policy follows the rules."""

from typing import Annotated

import typer

from decision.model.errors import PolicyError

from .command import add_command
from .options import JsonOption, SettingsOption, read_pairs

app = typer.Typer(invoke_without_command=True)


@app.callback()
def policies(ctx: typer.Context, as_json: JsonOption = False) -> None:
    """List the policies, or check one of your own.

    Prints each policy's name, what it does, and the paper that describes it.

    Examples:

      decision policies

      decision policies check ./mine.py:Mine
    """
    if ctx.invoked_subcommand is not None:
        return
    from decision.policies import list_policies

    from .tables import print_catalogue, print_json

    if as_json:
        print_json({"policies": [entry._asdict() for entry in list_policies()]})
    else:
        print_catalogue(list_policies())


def check_policy_command(
    policy: Annotated[str, typer.Argument(help="Name, module:Class or ./file.py:Class.", metavar="POLICY")],
    settings: SettingsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Test whether a policy follows the rules, on small workloads.

    The workloads have ties, jobs without walltime, and hosts that leave and
    sleep; each is run twice with the same seed. Exit codes: 0 if the policy
    follows the rules, 2 if it breaks any.

    Example:

      decision policies check ./mine.py:Mine
    """
    from decision.policies import find_policy
    from decision.simulation import check_policy

    from .progress import announce_compilation
    from .tables import count, print_json
    from .terminal import say

    announce_compilation()
    chosen = read_pairs(settings)
    findings = check_policy(lambda: find_policy(policy, chosen))
    if as_json:
        print_json({"policy": policy, "findings": findings})
        raise typer.Exit(PolicyError.exit_code if findings else 0)
    if findings:
        raise PolicyError("\n  ".join([f"{policy} breaks {count(len(findings), 'rule')}:", *findings]))
    say(f"{policy} follows the rules")


add_command(app, "check", check_policy_command)
