"""``decision bound``: what value no schedule of a workload can exceed."""

from typing import Annotated

import typer

from .options import (
    EventsOption,
    JsonOption,
    PlatformOption,
    SelectOption,
    WalltimeName,
    WorkloadOption,
    read_selection,
)

Step = Annotated[float, typer.Option("--step", help="Seconds that have one price.", min=0.001, max=1e6)]


def bound_command(
    platform: PlatformOption,
    workload: WorkloadOption,
    events: EventsOption = None,
    jobs: SelectOption = None,
    step: Step = 60.0,
    as_json: JsonOption = False,
) -> None:
    """Bound the value that any schedule can get, suspensions included.

    For any prices of power, one for each step, no schedule whose jobs end in time
    gets more value than all power costs and all jobs gain, each in the cheapest
    steps before its deadline. The prices are those for which that is least. Power
    of the grid beyond the supply does not count.

    Example:

      decision bound -p ten.xml -w green.json --events supply.txt
    """
    from decision.analysis.value_bound import value_bound
    from decision.runs.inputs import Inputs, load_inputs

    from .tables import number, print_json
    from .terminal import say

    selection = read_selection(jobs, None, WalltimeName.REQUESTED, None)
    case = load_inputs(
        Inputs(platform=platform, workloads=(workload,), events=tuple(events or ()), selection=selection)
    )
    speed = max(host.pstates[host.initial_pstate].speed for host in case.platform.hosts)
    found = value_bound(case.workloads[0], len(case.platform.hosts), case.events, step, speed)
    if as_json:
        print_json({"value": found.value, "submitted": found.submitted, "value_share": found.share})
        return
    share = f"{number(100 * found.share)} % of the {number(found.submitted)} that were submitted"
    say(f"no schedule gets more value than {number(found.value)}, {share}")
