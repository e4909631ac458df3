"""``decision bound``: what value no schedule of a workload can exceed."""

import math
from typing import Annotated

import typer

from .grouped import Chosen
from .options import EventsOption, JsonOption, PlatformOption, SelectOption, TimeZoneOption, WorkloadOption

Step = Annotated[float, typer.Option("--step", help="Seconds that have one price.", min=0.001, max=1e6)]


Grid = Annotated[float, typer.Option("--grid", help="Hosts that the grid powers beyond the supply.", min=0, max=1e6)]
Stored = Annotated[float, typer.Option("--battery", help="Host-hours that a battery can hold.", min=0, max=1e9)]
Charge = Annotated[
    float | None, typer.Option("--battery-charge", help="Hosts that it takes the power of at most.", min=0, max=1e9)
]
Discharge = Annotated[
    float | None, typer.Option("--battery-discharge", help="Hosts that it powers at most.", min=0, max=1e9)
]
Efficiency = Annotated[
    float, typer.Option("--battery-efficiency", help="Share of what it takes that it gives back.", min=0.01, max=1)
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
    from decision.analysis.value_bound import value_bound
    from decision.policies.battery import Battery
    from decision.runs.inputs import Inputs, load_inputs

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
