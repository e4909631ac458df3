"""``decision workload failures``: hosts that fail and are repaired, as external events."""

from pathlib import Path
from typing import Annotated

import typer

from .options import JsonOption, OutputFile, SeedOption

_LEAST, _MOST = 1e-3, 1e12  # seconds

For = Annotated[
    Path | None, typer.Option("--for", help="Workload that hosts fail during.", metavar="FILE", dir_okay=False)
]
Hosts = Annotated[int | None, typer.Option("--hosts", help="Number of hosts, each on its own.", min=1, max=1_000_000)]
Platform = Annotated[
    Path | None, typer.Option("--platform", "-p", help="Platform; hosts of one server fail together.", metavar="FILE")
]
Mtbf = Annotated[
    float,
    typer.Option("--mtbf", help="Mean seconds from a repair to the next failure of a server.", min=_LEAST, max=_MOST),
]
Repair = Annotated[float, typer.Option("--repair", help="Mean seconds of a repair.", min=_LEAST, max=_MOST)]
Shape = Annotated[
    float, typer.Option("--shape", help="Weibull shape of times to failure; 1: exponential.", min=0.1, max=20)
]
RepairShape = Annotated[float, typer.Option("--repair-shape", help="Weibull shape of repairs.", min=0.1, max=20)]
Length = Annotated[
    float | None,
    typer.Option(
        "--length", help="Seconds in which failures begin; by default twice as long as jobs come.", min=1, max=_MOST
    ),
]


def failures_command(
    output: OutputFile,
    mtbf: Mtbf,
    repair: Repair,
    hosts: Hosts = None,
    platform: Platform = None,
    workload: For = None,
    length: Length = None,
    shape: Shape = 1.0,
    repair_shape: RepairShape = 1.0,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Make failures of hosts and their repairs, for --events.

    The file has Batsim's events machine_unavailable and machine_available. By
    default jobs run on, as in Batsim; a policy's option failed=kill lets those die
    whose hosts fail, and failed=resubmit submits them again. The metric lost_work
    says what was done in vain.

    Examples:

      decision workload failures --mtbf 2e6 --repair 3600 -p taurus --for taurus_week_flops -o failures.txt

      decision workload failures --mtbf 1e6 --shape 0.7 --repair 7200 --repair-shape 0.8
          --hosts 256 --length 1e7 -o failures.txt
    """
    import numpy as np

    from decision.computer.shipped import find_platform, find_workload
    from decision.formats import load_platform, load_workload
    from decision.formats.files import write_files
    from decision.generate.failures import FailureModel, availability, failure_lines, failures
    from decision.model.demand import submit_times
    from decision.model.errors import ConfigError

    from .tables import print_json
    from .terminal import say

    if (hosts is None) == (platform is None):
        raise ConfigError("give --hosts or --platform")
    if length is None:
        if workload is None:
            raise ConfigError("give --length, or with --for the workload that says how long jobs come")
        jobs = load_workload(find_workload(workload))
        length = max(2.0 * float(submit_times(jobs).max()), 1.0)
    if platform is None:
        machines = [[host] for host in range(hosts or 0)]
    else:
        servers: dict[str | int, list[int]] = {}
        for host, name in enumerate(load_platform(find_platform(platform)).servers):
            servers.setdefault(name or host, []).append(host)
        machines = list(servers.values())
    model = FailureModel(mtbf=mtbf, repair=repair, shape=shape, repair_shape=repair_shape, length=length)
    found = failures(np.random.default_rng(seed), len(machines), model)
    write_files({output: [failure_lines(found, machines)]})
    there = availability(found, len(machines), length)
    if as_json:
        facts = {"path": output, "machines": len(machines), "failures": len(found), "length": length}
        print_json({**facts, "availability": there})
    else:
        say(
            f"{output}: {len(found):,} failures of {len(machines):,} machines in {length:,.0f} s; {there:.2%} available"
        )
