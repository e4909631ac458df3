"""``decision policies``: what can be run, and whether a policy follows the rules."""

from typing import Annotated, Any

import typer

from decision.model.errors import PolicyError

from .command import Group, add_command
from .options import DecideLimitOption, JsonOption, SettingsOption
from .readers import read_pairs


class Policies(Group):
    """Takes a policy's name where a command may stand."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command of the arguments; for a policy's name the hidden one that lists its options."""
        return super().resolve_command(ctx, args if args[0] in self.commands else [_OPTIONS, *args])


_OPTIONS = "options"

app = typer.Typer(cls=Policies, invoke_without_command=True, subcommand_metavar="[POLICY] | COMMAND [ARGS]...")


@app.callback()
def policies(ctx: typer.Context, as_json: JsonOption = False) -> None:
    """List the policies or the options of one, or check one of your own.

    Prints each policy's name, what it does, and the paper that describes it;
    for a policy's name, its options with their defaults and units.

    Examples:

      decision policies

      decision policies easy

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


def options_command(
    policy: Annotated[str, typer.Argument(help="Policy, as for decision run.", metavar="POLICY")],
    as_json: JsonOption = False,
) -> None:
    """List the options of a policy.

    Example:

      decision policies easy
    """
    from decision.policies import list_options

    from .tables import print_json, print_options

    options = list_options(policy)
    if as_json:
        print_json({"policy": policy, "options": [option._asdict() for option in options]})
    else:
        print_options(policy, options)


def check_policy_command(
    policy: Annotated[str, typer.Argument(help="Name, module:Class or ./file.py:Class.", metavar="POLICY")],
    settings: SettingsOption = None,
    decide_limit: DecideLimitOption = 5.0,
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
    from decision.simulation import try_policy

    from .progress import announce_compilation
    from .tables import count, print_json
    from .terminal import say

    announce_compilation()
    chosen = read_pairs(settings)
    findings = try_policy(lambda: find_policy(policy, chosen), decide_limit)
    if as_json:
        print_json({"policy": policy, "findings": findings})
        raise typer.Exit(PolicyError.exit_code if findings else 0)
    if findings:
        raise PolicyError("\n  ".join([f"{policy} breaks {count(len(findings), 'rule')}:", *findings]))
    say(f"{policy} follows the rules")


add_command(app, "check", check_policy_command)
add_command(app, _OPTIONS, options_command, hidden=True)
