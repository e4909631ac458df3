"""``decision workload``: what a workload is like, and the commands that make and convert workloads."""

import math
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from decision.model.errors import ConfigError
from decision.model.table import Table
from decision.report.plots import Paper, drawn_for

from .command import Group, add_command
from .declared import Option
from .options import (
    PAPER,
    Begin,
    ColumnName,
    DpiOption,
    Gaps,
    GapsOption,
    JsonOption,
    OutputFile,
    PlotFile,
    SeedOption,
    SpeedOption,
    TimeColumn,
    TimeFieldOption,
    TimeZoneOption,
    TypeSizeOption,
    WidthOption,
    WorkloadArgument,
    layout_of,
    read_speed,
)
from .tables import (
    as_percent,
    duration_short,
    number,
    number_short,
    print_dropped,
    print_facts,
    print_json,
    print_table,
)
from .terminal import say
from .workload_audit import audit_command, clean_command, fetch_command, outages_command, sacct_command
from .workload_convert import OLD_NAMES, convert_command, to_swf_command
from .workload_make import (
    carbon_command,
    failures_command,
    green_command,
    grid5000_like_command,
    lublin_command,
    predicted_runtimes_command,
    price_command,
    topology_jobs_command,
)

if TYPE_CHECKING:
    from decision.experiments.descriptions import WorkloadFigures
    from decision.files.events import SeriesLayout
    from decision.files.generate.events import SupplyModel
    from decision.model.record import Floats
    from decision.model.workload import Workload

# ``decision workload supply``: power that comes and goes, as external events.

_MOST = 1_000_000  # more are a mistake
_table_option = partial(Option, panel="A table of power")

Hosts = Annotated[
    int | None, Option("--hosts", help="Number of hosts; by default what --for is made for.", min=1, max=_MOST)
]
Steps = Annotated[
    int | None, Option("--steps", help="Number of steps; by default as many as --for needs, and 60.", min=1, max=_MOST)
]
For = Annotated[Path | None, Option("--for", help="Workload that the supply is for.", metavar="FILE", dir_okay=False)]
Step = Annotated[float, Option("--step", help="Length of a step in seconds.", min=0.001, max=1e6)]
Day = Annotated[float, Option("--day", help="Seconds from midnight to midnight.", min=1, max=1e9)]
Sun = Annotated[float, Option("--sun", help="Share of the hosts that a clear noon powers.", min=0, max=100)]
Wind = Annotated[float, Option("--wind", help="Share of the hosts that wind powers on average.", min=0, max=100)]
Battery = Annotated[float, Option("--battery", help="Host-hours that a battery can hold.", min=0, max=1e9)]
Floor = Annotated[int, Option("--floor", help="Number of hosts that the grid always powers.", min=0, max=_MOST)]
Forecast = Annotated[
    int, Option("--forecast", help="Steps of each forecast; 0: none, and events at changes only.", min=0, max=64)
]
Error = Annotated[
    float, Option("--error", help="Error of the forecast for the next step, share of the hosts.", min=0, max=10)
]
Rate = Annotated[
    float | None, Option("--battery-rate", help="Hosts that the battery powers, or takes, at most.", min=0, max=1e9)
]
Efficiency = Annotated[
    float, Option("--battery-efficiency", help="Share of what the battery takes that it gives back.", min=0.01, max=1)
]
TableFile = Annotated[
    Path | None,
    _table_option("--csv", help="Power by time, from a table (CSV or Parquet).", metavar="FILE", dir_okay=False),
]


class SupplyUnit(StrEnum):
    """What a table of power counts."""

    HOSTS = "hosts"
    WATTS = "W"
    KILOWATTS = "kW"
    IRRADIANCE = "W/m2"


_WATTS = {SupplyUnit.WATTS: 1.0, SupplyUnit.KILOWATTS: 1000.0}
UnitOption = Annotated[SupplyUnit, _table_option("--unit", help="What the table counts.", case_sensitive=False)]
Area = Annotated[float | None, _table_option("--area", help="Of panels, m2; with W/m2.", min=1e-6, max=1e9)]
Panels = Annotated[
    float | None,
    _table_option("--efficiency", help="Share of the light that panels turn into power; with W/m2.", min=1e-6, max=1),
]
HostWatts = Annotated[
    float | None,
    _table_option("--host-watts", help="What a host takes that computes; others take nothing.", min=1e-6, max=1e9),
]
Platform = Annotated[
    Path | None,
    _table_option(
        "--platform", "-p", help="Platform that says what its hosts draw, computing and not.", metavar="FILE"
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
    battery_rate: Rate = None,
    battery_efficiency: Efficiency = 1.0,
    floor: Floor = 1,
    forecast: Forecast = 20,
    error: Error = 0.05,
    table: TableFile = None,
    time_column: TimeColumn = None,
    column: ColumnName = None,
    unit: UnitOption = SupplyUnit.HOSTS,
    area: Area = None,
    efficiency: Panels = None,
    host_watts: HostWatts = None,
    platform: Platform = None,
    begin: Begin = None,
    gaps: GapsOption = Gaps.REFUSE,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Make a supply of power that comes and goes, for --events.

    At each step so many hosts may compute: what sun and wind power, or a table
    says, smoothed by a battery, and at least what the grid powers. A battery knows
    the last day and not what comes. The file has generic events of Batsim,
    {"type": "power_supply", "timestamp": t, "hosts": k, "forecast": [...]}; a
    Batsim of your own needs --forward-unknown-events, which decision run passes
    itself.

    A table in watts becomes hosts by --host-watts, or by a platform: so many may
    compute as it feeds at full load while all others idle.

    Examples:

      decision workload supply --for green.json -o supply.txt

      decision workload supply --hosts 50 --steps 10000 --battery 40 -o s.txt

      decision workload supply --for w.json --csv pv.csv --column ghi --unit W/m2
          --area 500 --efficiency 0.2 -p taurus -o s.txt
    """
    import numpy as np

    from decision.files import load_workload
    from decision.files.generate.events import SupplyModel, green_power, supplied_hosts, supply_lines
    from decision.files.text import write_files

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
        battery_rate=math.inf if battery_rate is None else battery_rate,
        battery_efficiency=battery_efficiency,
        floor=floor,
        horizon=forecast,
        error=error,
    )
    rng = np.random.default_rng(seed)
    if table is None:
        power = green_power(rng, model)
    else:
        source = _Source(unit, area, efficiency, host_watts, platform)
        power = source.power(table, layout_of(time_column, column, begin, gaps), model)
    write_files({output: [supply_lines(rng, power, model)]})
    mean = float(supplied_hosts(power, model).mean())
    facts = {"path": output, "hosts": hosts, "steps": steps, "mean_hosts": mean}
    if as_json:
        print_json(facts)
    else:
        say(f"{output}: {steps:,} steps of {step:g} s, {mean:.1f} of {hosts:,} hosts on average")


class _Source(NamedTuple):
    """How a table of power becomes hosts."""

    unit: SupplyUnit
    area: float | None
    efficiency: float | None
    host_watts: float | None
    platform: Path | None

    def power(self, table: Path, layout: "SeriesLayout", model: "SupplyModel") -> "Floats":
        """Power by step, (S,) hosts: the mean of what the table says during it."""
        import numpy as np

        from decision.files.events import read_series

        if {self.area is not None, self.efficiency is not None} != {self.unit is SupplyUnit.IRRADIANCE}:
            raise ConfigError("--area and --efficiency go with --unit W/m2, which needs both")
        if (self.host_watts is not None) + (self.platform is not None) != (self.unit is not SupplyUnit.HOSTS):
            raise ConfigError(f"--unit {self.unit.value}: watts need --host-watts or --platform, and hosts neither")
        # What one of the table's units is: watts, or a host
        scale = _WATTS.get(self.unit, (self.area or 1.0) * (self.efficiency or 1.0))
        edges = np.linspace(0.0, model.steps * model.step, model.steps + 1)
        series = read_series(table, layout, ("hosts", "power", "watts"), until=float(edges[-2]))
        power = series.averages(edges) * scale
        if self.unit is SupplyUnit.HOSTS:
            return power
        if self.platform is None:
            return power / (self.host_watts or 1.0)
        from decision.files import load_platform
        from decision.model.computer import find_platform
        from decision.model.platform import draw_of

        within = draw_of(load_platform(find_platform(self.platform), energy=True)).hosts_within(power)
        return within.clip(min=0).astype(float)


Predictors = Annotated[
    list[str] | None,
    Option(
        "--predictor",
        help="What predicts: walltime, last2, regression, quantiles, actual or noise:S; may be repeated.",
        show_default="the first four",
        metavar="P",
    ),
]
PredictedFile = Annotated[
    Path | None,
    Option(
        "-o",
        "--output",
        help="Write the workload as Batsim's JSON, with predictions as the jobs' estimate.",
        dir_okay=False,
    ),
]


def describe_command(
    file: WorkloadArgument,
    speed: SpeedOption = None,
    time_field: TimeFieldOption = None,
    time_zone: TimeZoneOption = None,
    plot: PlotFile = None,
    width: WidthOption = PAPER.width,
    type_size: TypeSizeOption = PAPER.type_size,
    dpi: DpiOption = PAPER.dpi,
    as_json: JsonOption = False,
) -> None:
    """Describe a workload: sizes, run times, estimates, arrivals, users.

    The offered load is the host time that the jobs take, each at most its
    walltime, divided by the host time that the machine has from the first
    submission to the last.

    Examples:

      decision workload describe log.swf

      decision workload describe week.json --speed 141.24Gf --plot week.png
    """
    import msgspec

    from decision.experiments.conversion import load_any
    from decision.experiments.descriptions import workload_figures
    from decision.model.demand import runtimes
    from decision.model.reshape import refuse_empty

    workload = load_any(file, time_field, time_zone)
    refuse_empty(workload)
    seconds = runtimes(workload, read_speed(speed))
    if plot is not None:
        from decision.report.plots import require_matplotlib

        require_matplotlib()
        from decision.report.plots.workloads import draw_workload

        with drawn_for(Paper(width, type_size, dpi)):
            draw_workload(workload, seconds, plot, file.name)
    print_dropped([workload])
    found = workload_figures(workload, seconds)
    if as_json:
        facts = {"path": workload.path, "dropped": workload.dropped, "unix_start": workload.unix_start}
        print_json({**facts, **msgspec.structs.asdict(found)})
    else:
        print_figures(workload, found)


_BAND = 3  # hours


def print_figures(workload: "Workload", facts: "WorkloadFigures") -> None:
    """Print a workload's facts, distributions and arrivals."""
    import numpy as np

    from decision.model.dates import WEEKDAYS, clock_text
    from decision.model.demand import submit_times

    users = f"{len(facts.jobs_by_user):,}" if len(facts.jobs_by_user) else "unknown"
    said = [("jobs", f"{facts.jobs:,}"), ("hosts", f"{facts.nb_res:,}"), ("users", users)]
    if workload.unix_start is not None:
        times = submit_times(workload)
        said.append(("first submission", clock_text(workload, float(times.min()))))
        said.append(("last submission", clock_text(workload, float(times.max()))))
    said += [
        ("submitted within", duration_short(facts.span)),
        ("offered load", "-" if math.isnan(facts.load) else f"{facts.load:.3f}"),
        ("of one host", as_percent(facts.serial)),
        ("of more, powers of two", as_percent(facts.powers)),
        ("with a walltime", as_percent(facts.limited)),
        ("of these, exact", as_percent(facts.exact)),
        ("of these, too short", as_percent(facts.stopped)),
    ]
    print_facts(said, figures=True)
    names, spreads = ("least", "25 %", "median", "75 %", "95 %", "most", "mean"), []
    for spread, written in (
        (facts.size, number_short),
        (facts.runtime, duration_short),
        (facts.walltime, duration_short),
        (facts.accuracy, number_short),
        (facts.gap, duration_short),
    ):
        spreads.append([written(getattr(spread, name)) for name in spread.__struct_fields__])
    columns = ("", ">size\nhosts", ">run time", ">walltime", ">run time /\nwalltime", ">between\narrivals")
    exact = "all walltimes are the run times: the log has none, or they are perfect estimates"
    print_table(Table("", columns, list(zip(names, *spreads, strict=True))), exact if facts.exact == 1 else None)
    known = workload.unix_start is not None
    hours = [f"{hour}-{hour + _BAND}" for hour in range(0, 24, _BAND)]
    weekdays = list(WEEKDAYS) if known else [f"day {day}" for day in range(1, 8)]
    by_band = np.add.reduceat(facts.by_hour, range(0, 24, _BAND))
    for what, heads, shares in (("hour", hours, by_band), ("weekday", weekdays, facts.by_weekday)):
        row = ["% of jobs", *(f"{100 * share:.1f}" for share in shares.tolist())]
        print_table(Table("", (f"arrivals by {what}", *(f">{head}" for head in heads)), [row]))
    if not known:
        say("the date is unknown: hours and days are counted from t=0")


def predict_command(
    file: WorkloadArgument,
    predictor: Predictors = None,
    output: PredictedFile = None,
    time_field: TimeFieldOption = None,
    time_zone: TimeZoneOption = None,
    speed: SpeedOption = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Predict each job's run time as a scheduler could, and show the errors.

    A predictor learns a run time when the job has ended; predictions are at most
    the walltime. In a log, a job ends its waiting time and its run time after
    its submission; an unknown waiting time counts as 0.

      walltime    the requested time

      last2       the mean of the user's last two ended jobs (Tsafrir 2007)

      regression  of the logarithm, on user, size, walltime and hour

      quantiles   the median of a distribution; it says how many jobs take what
                  their interval of 80 % has, said at their submission

      actual      the run time itself: perfect predictions

      noise:S     the run time, times e to S times a normally distributed number

    With -o the workload is written with each job's prediction as its field
    estimate, which policies read with estimate=given.

    Accuracy is the mean of min(p, r) / max(p, r) for predictions p of run times
    r: 1 is perfect.

    Examples:

      decision workload predict NASA-iPSC-1993-3.1-cln.swf

      decision workload predict theta.swf --time-field 6 --predictor last2

      decision workload predict week.json --predictor noise:0.5 -o told.json
    """
    import numpy as np

    from decision.experiments.conversion import load_any, write_with_predictions
    from decision.model.errors import ConfigError
    from decision.policies.runtimes import PREDICTORS
    from decision.policies.runtimes.predictors import history_of, interval_coverage, measure_errors, predict_by

    workload = load_any(file, time_field, time_zone)
    history = history_of(workload, read_speed(speed))
    names, rng = predictor or list(PREDICTORS), np.random.default_rng(seed)
    if output is not None and len(names) != 1:
        raise ConfigError("-o writes the predictions of one predictor; name it with --predictor")
    predictions = {name: predict_by(name, history, rng) for name in names}
    if output is not None:
        write_with_predictions(file, workload, predictions[names[0]], output)
    errors = {name: measure_errors(seconds, history.runtime) for name, seconds in predictions.items()}
    coverage = interval_coverage(history) if "quantiles" in names else None
    if as_json:
        found = {"jobs": len(history.runtime), "predictors": errors}
        print_json(found if coverage is None else {**found, "interval_coverage": coverage})
    else:
        mean = number(float(history.runtime.mean()))
        caption = f"{len(history.runtime):,} jobs, mean run time {mean} s; errors are absolute"
        if coverage is not None:
            caption += f"; intervals of 80 % by quantiles hold {as_percent(coverage)} of the jobs"
        rows = []
        for name, each in errors.items():
            accuracy = "-" if math.isnan(each.accuracy) else f"{each.accuracy:.3f}"
            means = (each.mean_absolute_error, each.median_absolute_error)
            figures = (100 * each.share, *means, 100 * each.under, 100 * each.over)
            rows.append((name, *map(number, figures), accuracy))
        print_table(Table("", _ERRORS, rows), caption)


_ERRORS = (
    *("predictor", ">jobs\npredicted\n%", ">mean\nerror\ns", ">median\nerror\ns"),
    *(">too\nshort\n%", ">too\nlong\n%", ">accuracy"),
)


app = Group("workload", no_args_is_help=True, help="Make, convert and describe workloads.")
add_command(app, "convert", convert_command)
add_command(app, "audit", audit_command)
add_command(app, "clean", clean_command)
add_command(app, "outages", outages_command)
add_command(app, "fetch", fetch_command)
for _name, _command in OLD_NAMES.items():
    add_command(app, _name, _command, hidden=True)
add_command(app, "to-swf", to_swf_command, hidden=True)  # convert -o FILE.swf
add_command(app, "sacct", sacct_command, hidden=True)  # prints what the guide of logs shows
add_command(app, "describe", describe_command)
add_command(app, "lublin", lublin_command)
add_command(app, "predict", predict_command)
add_command(app, "supply", supply_command)
add_command(app, "failures", failures_command)
add_command(app, "carbon", carbon_command)
add_command(app, "price", price_command)

_presets = Group(
    "preset",
    no_args_is_help=True,
    help="Make the workloads of published papers: grid5000-like, and those of decision reproduce, which are "
    "predicted-runtimes, green (jobs with value) and topology.",
)
add_command(_presets, "predicted-runtimes", predicted_runtimes_command, hidden=True)
add_command(_presets, "grid5000-like", grid5000_like_command)
add_command(_presets, "green", green_command, hidden=True)
add_command(_presets, "topology", topology_jobs_command, hidden=True)
app.add_command(_presets)
