"""``decision workload supply``: power that comes and goes, as external events."""

from pathlib import Path
from typing import Annotated

import typer

from .options import JsonOption, OutputFile, SeedOption

_MOST = 1_000_000  # more are a mistake

Hosts = Annotated[
    int | None, typer.Option("--hosts", help="Number of hosts; by default what --for is made for.", min=1, max=_MOST)
]
Steps = Annotated[
    int | None,
    typer.Option("--steps", help="Number of steps; by default as many as --for needs, and 60.", min=1, max=_MOST),
]
For = Annotated[
    Path | None, typer.Option("--for", help="Workload that the supply is for.", metavar="FILE", dir_okay=False)
]
Step = Annotated[float, typer.Option("--step", help="Length of a step in seconds.", min=0.001, max=1e6)]
Day = Annotated[float, typer.Option("--day", help="Seconds from midnight to midnight.", min=1, max=1e9)]
Sun = Annotated[float, typer.Option("--sun", help="Share of the hosts that a clear noon powers.", min=0, max=100)]
Wind = Annotated[float, typer.Option("--wind", help="Share of the hosts that wind powers on average.", min=0, max=100)]
Battery = Annotated[float, typer.Option("--battery", help="Host-hours that a battery can hold.", min=0, max=1e9)]
Floor = Annotated[int, typer.Option("--floor", help="Number of hosts that the grid always powers.", min=0, max=_MOST)]
Forecast = Annotated[
    int,
    typer.Option("--forecast", help="Steps of each forecast; 0: none, and events at changes only.", min=0, max=64),
]
Error = Annotated[
    float,
    typer.Option("--error", help="Error of the forecast for the next step, share of the hosts.", min=0, max=10),
]
Table = Annotated[
    Path | None,
    typer.Option(
        "--csv", help="Power in hosts, from a table with columns time and hosts.", metavar="FILE", dir_okay=False
    ),
]


def supply_command(
    output: OutputFile,
    hosts: Hosts = None,
    workload: For = None,
    steps: Steps = None,
    step: Step = 60.0,
    day: Day = 86400.0,
    sun: Sun = 0.8,
    wind: Wind = 0.4,
    battery: Battery = 0.0,
    floor: Floor = 1,
    forecast: Forecast = 20,
    error: Error = 0.05,
    table: Table = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Make a supply of power that comes and goes, for --events.

    At each step so many hosts may compute: what sun and wind power, or a table
    says, smoothed by a battery, and at least what the grid powers. The file has
    generic events of Batsim, {"type": "power_supply", "timestamp": t, "hosts": k,
    "forecast": [...]}; a Batsim of your own needs --forward-unknown-events, which
    decision run passes itself.

    Examples:

      decision workload supply --for green.json -o supply.txt

      decision workload supply --hosts 50 --steps 10000 --battery 40 -o s.txt

      decision workload supply --hosts 10 --steps 600 --csv power.csv -o s.txt
    """
    import math

    import numpy as np

    from decision.formats import load_workload
    from decision.formats.files import write_files
    from decision.generate.supply import SupplyModel, green_power, read_power, supplied_hosts, supply_lines
    from decision.model.errors import ConfigError

    from .tables import print_json
    from .terminal import say

    known = load_workload(workload) if workload else None
    if known is not None and known.jobs:
        hosts = hosts or known.nb_res
        steps = steps or math.ceil(max(job.submit_time for job in known.jobs) / step) + 60
    if hosts is None or steps is None:
        raise ConfigError("give --hosts and --steps, or with --for the workload that says both")
    if floor > hosts:
        raise ConfigError(f"--floor {floor}: there are only {hosts} hosts; give fewer")
    model = SupplyModel(
        hosts=hosts,
        steps=steps,
        step=step,
        day=day,
        sun=sun,
        wind=wind,
        battery=battery,
        floor=floor,
        horizon=forecast,
        error=error,
    )
    rng = np.random.default_rng(seed)
    power = green_power(rng, model) if table is None else read_power(table, model)
    write_files({output: [supply_lines(rng, power, model)]})
    mean = float(supplied_hosts(power, model).mean())
    facts = {"path": output, "hosts": hosts, "steps": steps, "mean_hosts": mean}
    if as_json:
        print_json(facts)
    else:
        say(f"{output}: {steps:,} steps of {step:g} s, {mean:.1f} of {hosts:,} hosts on average")
