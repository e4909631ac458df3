"""``decision policies``: what can be run, and whether a policy follows the rules; and ``decision bound``."""

import math
from typing import Annotated, Any

import click

from decision.model.errors import PolicyError
from decision.model.table import Table

from .command import Chosen, Group, add_command
from .declared import Argument, Option, make_command
from .options import (
    DecideLimitOption,
    EventsOption,
    JsonOption,
    PlatformOption,
    SelectOption,
    SettingsOption,
    TimeZoneOption,
    WorkloadOption,
    read_pairs,
)


class Policies(Group):
    """Takes a policy's name where a command may stand."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command of the arguments; for a policy's name the hidden one that lists its options."""
        return super().resolve_command(ctx, args if args[0] in self.commands else [_OPTIONS, *args])


_OPTIONS = "options"


def policies(ctx: click.Context, as_json: JsonOption = False) -> None:
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

    from .tables import print_json, print_table
    from .terminal import note

    catalogue = list_policies()
    if as_json:
        print_json({"policies": [entry._asdict() for entry in catalogue]})
        return
    rows = [(each.name, f"{each.summary} ({each.paper})" if each.paper else each.summary) for each in catalogue]
    print_table(Table("", ("policy", "description and source"), rows))
    note("decision policies NAME lists the options of a policy")


def options_command(
    policy: Annotated[str, Argument(help="Policy, as for decision run.", metavar="POLICY")], as_json: JsonOption = False
) -> None:
    """List the options of a policy.

    Example:

      decision policies easy
    """
    from decision.policies import list_options

    from .tables import print_json, print_table
    from .terminal import say

    options = list_options(policy)
    if as_json:
        print_json({"policy": policy, "options": [option._asdict() for option in options]})
        return
    if not options:
        say(f"{policy} has no options")
        return
    rows = [
        (name, default or "must be given", unit, f"{summary} ({paper})" if paper else summary)
        for name, default, unit, summary, paper in options
    ]
    print_table(Table("", ("option", "default", "unit", "description and source"), rows))
    say(f"--policy {policy},{options[0].name}=... or --option {options[0].name}=...")


def check_policy_command(
    policy: Annotated[str, Argument(help="Name, module:Class or ./file.py:Class.", metavar="POLICY")],
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

    from .tables import count, print_json
    from .terminal import announce_compilation, say

    announce_compilation()
    chosen = read_pairs(settings)
    findings = try_policy(lambda: find_policy(policy, chosen), decide_limit)
    if as_json:
        print_json({"policy": policy, "findings": findings})
        raise click.exceptions.Exit(PolicyError.exit_code if findings else 0)
    if findings:
        raise PolicyError("\n  ".join([f"{policy} breaks {count(len(findings), 'rule')}:", *findings]))
    say(f"{policy} follows the rules")


app = make_command(
    policies, "policies", Policies, invoke_without_command=True, subcommand_metavar="[POLICY] | COMMAND [ARGS]..."
)
add_command(app, "check", check_policy_command)
add_command(app, _OPTIONS, options_command, hidden=True)

# ``decision bound``: what value no schedule of a workload can exceed.

Step = Annotated[float, Option("--step", help="Seconds that have one price.", min=0.001, max=1e6)]


Grid = Annotated[float, Option("--grid", help="Hosts that the grid powers beyond the supply.", min=0, max=1e6)]
Stored = Annotated[float, Option("--battery", help="Host-hours that a battery can hold.", min=0, max=1e9)]
Charge = Annotated[
    float | None, Option("--battery-charge", help="Hosts that it takes the power of at most.", min=0, max=1e9)
]
Discharge = Annotated[float | None, Option("--battery-discharge", help="Hosts that it powers at most.", min=0, max=1e9)]
Efficiency = Annotated[
    float, Option("--battery-efficiency", help="Share of what it takes that it gives back.", min=0.01, max=1)
]


def bound_command(
    platform: PlatformOption,
    workload: WorkloadOption,
    events: EventsOption = None,
    jobs: SelectOption = None,
    time_zone: TimeZoneOption = None,
    step: Step = 60.0,
    grid: Grid = 0.0,
    battery: Stored = 0.0,
    battery_charge: Charge = None,
    battery_discharge: Discharge = None,
    battery_efficiency: Efficiency = 1.0,
    as_json: JsonOption = False,
) -> None:
    """Bound the value that any schedule can get, suspensions included.

    For any prices of power, one for each step, no schedule whose jobs end in time
    gets more value than all power costs and all jobs gain, each in the cheapest
    steps before its deadline. The prices are those for which that is least. Power
    of the grid beyond the supply counts where --grid says how much there is; a
    battery is empty at first, takes power of the supply alone, and knows what comes.

    Examples:

      decision bound -p ten.xml -w green.json --events supply.txt

      decision bound -p ten.xml -w green.json --events supply.txt --battery 20 \\
          --battery-charge 4 --battery-discharge 3 --battery-efficiency 0.9
    """
    from decision.experiments.inputs import Inputs, load_inputs
    from decision.experiments.worth import value_bound
    from decision.policies.traits import Battery

    from .tables import number, print_json
    from .terminal import say

    selection = Chosen(jobs=jobs, time_zone=time_zone).read()
    case = load_inputs(
        Inputs(platform=platform, workloads=(workload,), events=tuple(events or ()), selection=selection)
    )
    speed = max(host.pstates[host.initial_pstate].speed for host in case.platform.hosts)
    charge, discharge = (math.inf if rate is None else rate for rate in (battery_charge, battery_discharge))
    stored = Battery(3600.0 * battery, charge, discharge, battery_efficiency)
    found = value_bound(
        case.workloads[0], len(case.platform.hosts), case.events, step, speed, battery=stored, grid=grid
    )
    if as_json:
        print_json({"value": found.value, "submitted": found.submitted, "value_share": found.share})
        return
    share = f"{number(100 * found.share)} % of the {number(found.submitted)} that were submitted"
    say(f"no schedule gets more value than {number(found.value)}, {share}")
