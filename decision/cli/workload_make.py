"""``decision workload lublin|preset|failures|carbon|price``: workloads and events that are made, and written."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from decision.model.table import Table

from .declared import Argument, Option
from .options import (
    Begin,
    ColumnName,
    EstimatesOption,
    Gaps,
    GapsOption,
    HostsOption,
    JsonOption,
    NbJobsOption,
    OutputFile,
    SeedOption,
    TimeColumn,
    layout_of,
    read_pairs,
    read_range,
)

if TYPE_CHECKING:
    from decision.files.generate.paper_workloads import PublishedTrace, TraceFigures
    from decision.model.workload import Workload


class JobClasses(StrEnum):
    """Which of the model's three fits."""

    WHOLE = "whole"
    BATCH = "batch"
    INTERACTIVE = "interactive"
    BOTH = "both"


Classes = Annotated[
    JobClasses, Option("--classes", help="Fit: to all jobs, to one class, or both classes together (named in 'queue').")
]
Parameters = Annotated[
    list[str] | None, Option("--set", help="Model parameter; may be repeated.", metavar="[CLASS.]NAME=VALUE")
]


def lublin_command(
    output: OutputFile,
    jobs: NbJobsOption = 10_000,
    hosts: HostsOption = 256,
    seed: SeedOption = 0,
    classes: Classes = JobClasses.WHOLE,
    settings: Parameters = None,
    estimates: EstimatesOption = "exact",
    as_json: JsonOption = False,
) -> None:
    """Make a workload from the model of Lublin and Feitelson (2003).

    Sizes, run times that grow with size, and arrivals with a daily cycle.
    The defaults are the published ones; sizes depend on the number of hosts.
    Parameters for --set, with the values of the fit to all jobs:

      serial 0.244, power_of_two 0.576: shares of sizes

      size_low 0.8, size_high_below 0, size_medium_below 2.5,
      size_low_share 0.86: the two-stage uniform of log2 of the size

      short_shape 4.2, short_scale 0.94, long_shape 312, long_scale 0.03,
      short_share 0.78, short_share_slope -0.0054, longest 12: the
      hyper-gamma of the logarithm of the run time

      gap_shape 10.2303, gap_scale 0.4871, gap_all_day 1.0225,
      longest_gap 13: the gamma of the logarithm of the time between jobs

      cycle_shape 8.1737, cycle_scale 3.9631: the gamma of the daily cycle

    Examples:

      decision workload lublin -o lublin.json --nb-jobs 10000 --hosts 256

      decision workload lublin -o mixed.json --classes both \\
          --set batch.serial=0.5 --estimates tsafrir
    """
    import numpy as np

    from decision.files.generate.lublin import CLASSES, lublin_workload, with_settings
    from decision.policies.runtimes import apply_estimates

    changed = read_pairs(settings, "--set")
    rng = np.random.default_rng(seed)
    made = lublin_workload(rng, jobs, hosts, with_settings(CLASSES[classes.value], changed))
    made = apply_estimates(made, estimates, rng)
    given = "".join(f" --set {name}={value}" for name, value in changed.items())
    origin = "Workload model of Lublin and Feitelson (2003)."
    options = f"--nb-jobs {jobs} --hosts {hosts} --seed {seed} --classes {classes.value}{given} --estimates {estimates}"
    write_made(output, made, origin, f"lublin {options}", as_json)


def write_made(path: Path, workload: "Workload", origin: str, command: str, as_json: bool) -> None:
    """Write a made workload with its origin in its description, and print what it is; arguments as of `save_made`."""
    from .tables import count, print_json
    from .terminal import say

    facts = save_made(path, workload, origin, command)
    if as_json:
        print_json(facts)
        return
    size = f"{count(len(workload.jobs), 'job')} for {count(workload.nb_res, 'host')}"
    say(f"{path}: {size}, submitted within {facts['span'] / 86_400:.1f} days")


def save_made(path: Path, workload: "Workload", origin: str, command: str) -> dict[str, Any]:
    """Write a made workload; what it is, as data.

    Args:
        path: the file.
        workload: its jobs.
        origin: the model or paper, with its parameters; sentences.
        command: the arguments after ``decision workload`` that make it again.
    """
    import msgspec

    from decision.files import write_workload

    description = f"{origin} Made, not recorded: decision workload {command}"
    write_workload(path, msgspec.structs.replace(workload, description=description))
    span = workload.jobs[-1].submit_time - workload.jobs[0].submit_time
    return {"path": path, "jobs": len(workload.jobs), "hosts": workload.nb_res, "span": span, "command": command}


# ``decision workload preset``: workloads of papers.

_MOST = 1_000_000  # more are a mistake


class WorkloadName(StrEnum):
    """Which workload of Takizawa, Nomura and Matsuba."""

    WL1 = "WL1"
    WL2 = "WL2"


class RequestAccuracy(StrEnum):
    """Run times relative to requested times."""

    EXACT = "100"
    HALF = "050"
    RANDOM = "RND"


class Half(StrEnum):
    """Which thousand of a workload's 2,000 jobs."""

    A = "a"
    B = "b"


class Price(StrEnum):
    """What the value of a job per host and time step is."""

    QOS = "qos"
    INDEPENDENT = "independent"


class TraceName(StrEnum):
    """Cluster of Grid'5000 whose trace is followed."""

    ORION = "orion"
    GRAPHITE = "graphite"
    ECONOME = "econome"


Name = Annotated[
    WorkloadName, Option("--workload", help="Workload: 80 % (WL1) or 20 % (WL2) of the jobs on a single node.")
]
Accuracy = Annotated[
    RequestAccuracy,
    Option("--accuracy", help="Run times: as requested, half of it, or a random part, half on average."),
]
Part = Annotated[Half | None, Option("--half", help="Part: the first or the second 1,000 jobs; all by default.")]
SingleShare = Annotated[
    float | None, Option("--single", help="Share of jobs on a single node, in place of the workload's.", min=0, max=1)
]
ScaledLoad = Annotated[
    float | None, Option("--load", help="Offered load that gaps are scaled to; theirs by default.", min=0.001, max=1000)
]
ClusterName = Annotated[TraceName, Argument(help="Cluster of the trace.")]
Days = Annotated[
    str | None, Option("--days", help="Range of the days that have submissions; all by default.", metavar="A:B")
]
Rate = Annotated[
    float, Option("--rate", help="Requested host time, in percent of the hosts' time.", min=0.001, max=1e6)
]
Largest = Annotated[
    int | None, Option("--most-hosts", help="Size of the largest job; half of all hosts by default.", min=1)
]
LongestSteps = Annotated[
    int, Option("--most-steps", help="Length of the longest job, in time steps.", min=1, max=_MOST)
]
Step = Annotated[float, Option("--step", help="Length of a time step in seconds.", min=0.001, max=1e6)]
HighestValue = Annotated[int, Option("--most-value", help="Highest value per host and time step.", min=1, max=_MOST)]

PriceOption = Annotated[Price, Option("--price", help="Value per host and time step: drawn, or growing with the QoS.")]


def predicted_runtimes_command(
    output: OutputFile,
    workload: Name = WorkloadName.WL1,
    accuracy: Accuracy = RequestAccuracy.RANDOM,
    half: Part = None,
    single: SingleShare = None,
    load: ScaledLoad = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Make WL1 or WL2 of Takizawa, Nomura and Matsuba.

    2,000 jobs of the Lublin-Feitelson model for 256 nodes. Requested times are at
    most 6 h, 0.5 h on average; times between arrivals are at most 0.5 h, 100 s on
    average. The paper trains on half a and tests on half b.

    Examples:

      decision workload preset predicted-runtimes -o WL1_RNDa.json \\
          --workload WL1 --accuracy RND --half a

      decision workload preset predicted-runtimes -o half.json --single 0.5 --load 2
    """
    import numpy as np

    from decision.files.generate.paper_workloads import predicted_runtimes

    part = half.value if half else ""
    made = predicted_runtimes(np.random.default_rng(seed), workload.value, accuracy.value, part, single, load)
    origin = (
        f"{workload.value}_{accuracy.value}{part} after Takizawa, Nomura and Matsuba, PPO for job scheduling with "
        "predicted run times: Lublin-Feitelson jobs for 256 nodes."
    )
    chosen = f"--workload {workload.value} --accuracy {accuracy.value}" + (f" --half {part}" if part else "")
    for option, value in (("single", single), ("load", load)):
        chosen += f" --{option} {value:g}" if value is not None else ""
    write_made(output, made, origin, f"preset predicted-runtimes {chosen} --seed {seed}", as_json)


def grid5000_like_command(
    cluster: ClusterName, output: OutputFile, days: Days = None, seed: SeedOption = 0, as_json: JsonOption = False
) -> None:
    """Make days like those of a cluster's trace in DeepScheduling.

    The traces are not public. The workload matches the published figures: cores,
    jobs, days, the share of submissions less than 5 minutes after the previous
    one, the days in five groups by that share, and the utilization. A host is a
    core. Users, sizes, hours, weekdays and walltimes are plausible.

    Examples:

      decision workload preset grid5000-like orion -o orion.json

      decision workload preset grid5000-like econome --days 0:30 -o month.json
    """
    import numpy as np

    from decision.files.generate.paper_workloads import PUBLISHED_TRACES, grid5000_days, trace_figures

    from .tables import print_json, print_table

    trace = PUBLISHED_TRACES[cluster.value]
    made = grid5000_days(np.random.default_rng(seed), trace, read_range(days, "--days"))
    origin = (
        f"Days like those of Grid'5000's {cluster.value} in DeepScheduling (Casagrande, Koslovski, Miers and Pillon, "
        "Table 1); 0 s is midnight of the first day."
    )
    chosen = cluster.value + (f" --days {days}" if days else "")
    command = f"preset grid5000-like {chosen} --seed {seed}"
    figures = trace_figures(made, trace.cores)
    both: list[tuple[str, TraceFigures | PublishedTrace]] = [("made", figures), ("published", trace)]
    if as_json:
        facts = save_made(output, made, origin, command)
        values = {title: {n: getattr(row, n) for n in figures.__struct_fields__} for title, row in both}
        print_json({**facts, **values})
        return
    write_made(output, made, origin, command, as_json)
    rows = []
    for name, row in both:
        shares = (f"{100 * row.sequential:.1f}", f"{100 * row.utilization:.1f}")
        rows.append((name, f"{row.jobs:,}", f"{row.days:,}", *shares, "  ".join(map(str, row.groups))))
    columns = ("", ">jobs", ">days", ">sequential\n%", ">utilization\n%", ">days in groups 1 to 5")
    print_table(Table("", columns, rows), caption="published: of all days together")


def green_command(
    output: OutputFile,
    jobs: NbJobsOption = 10_000,
    hosts: HostsOption = 10,
    rate: Rate = 120.0,
    most_hosts: Largest = None,
    most_steps: LongestSteps = 10,
    step: Step = 60.0,
    most_value: HighestValue = 10,
    price: PriceOption = Price.INDEPENDENT,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Make the workload of a green datacenter, after Launchpad.

    Jobs arrive as a Poisson process, need some hosts for some time steps, and
    have four more fields: value, qos (percent), deadline and expected (seconds). A
    job runs for its expected time, which is qos percent of the time from its
    submission to its deadline; its walltime is a step longer, because Batsim stops
    what takes all of its walltime. All distributions are uniform, because the paper
    does not publish its own.

    Examples:

      decision workload preset green -o green.json --hosts 50 --rate 120
    """
    import numpy as np

    from decision.files.generate.paper_workloads import GreenModel, green_workload
    from decision.model.errors import ConfigError

    most = max(1, hosts // 2) if most_hosts is None else most_hosts
    if most > hosts:
        raise ConfigError(f"--most-hosts {most}: there are only {hosts} hosts; give fewer")
    model = GreenModel(
        hosts=hosts,
        rate=rate / 100,
        most_hosts=most,
        most_steps=most_steps,
        most_value=most_value,
        step=step,
        price_by_qos=price is Price.QOS,
    )
    made = green_workload(np.random.default_rng(seed), jobs, model)
    origin = (
        "After Launchpad (Venkataswamy, Grigsby, Grimshaw and Qi): Poisson arrivals, jobs with value, QoS and deadline."
    )
    chosen = f"--nb-jobs {jobs} --hosts {hosts} --rate {rate:g} --most-hosts {most} --most-steps {most_steps}"
    chosen = f"{chosen} --step {step:g} --most-value {most_value} --price {price} --seed {seed}"
    write_made(output, made, origin, f"preset green {chosen}", as_json)


def topology_jobs_command(
    output: OutputFile,
    jobs: NbJobsOption = 100_000,
    seed: SeedOption = 0,
    estimates: EstimatesOption = "exact",
    as_json: JsonOption = False,
) -> None:
    """Make the workload of topology-aware allocation by neural simulated annealing.

    Jobs of 1 to 40 nodes and 10 to 1,800 s, 5 to 30 s apart, all uniform, for a
    pruned fat-tree of 1,000 nodes.

    Examples:

      decision workload preset topology -o topology.json
    """
    import numpy as np

    from decision.files.generate.paper_workloads import topology_workload
    from decision.policies.runtimes import apply_estimates

    rng = np.random.default_rng(seed)
    made = apply_estimates(topology_workload(rng, jobs), estimates, rng)
    origin = "After Optimization of Topology-Aware Job Allocation by Neural Simulated Annealing: uniform jobs."
    command = f"preset topology --nb-jobs {jobs} --seed {seed} --estimates {estimates}"
    write_made(output, made, origin, command, as_json)


# ``decision workload failures``: hosts that fail and are repaired, as external events.

_LEAST, _MOST_FAILURES = 1e-3, 1e12  # seconds

For = Annotated[Path | None, Option("--for", help="Workload that hosts fail during.", metavar="FILE", dir_okay=False)]
Hosts = Annotated[int | None, Option("--hosts", help="Number of hosts, each on its own.", min=1, max=1_000_000)]
Platform = Annotated[
    Path | None, Option("--platform", "-p", help="Platform; hosts of one server fail together.", metavar="FILE")
]
Mtbf = Annotated[
    float,
    Option(
        "--mtbf", help="Mean seconds from a repair to the next failure of a server.", min=_LEAST, max=_MOST_FAILURES
    ),
]
Repair = Annotated[float, Option("--repair", help="Mean seconds of a repair.", min=_LEAST, max=_MOST_FAILURES)]
Shape = Annotated[float, Option("--shape", help="Weibull shape of times to failure; 1: exponential.", min=0.1, max=20)]
RepairShape = Annotated[float, Option("--repair-shape", help="Weibull shape of repairs.", min=0.1, max=20)]
Length = Annotated[
    float | None,
    Option(
        "--length",
        help="Seconds in which failures begin; by default twice as long as jobs come.",
        min=1,
        max=_MOST_FAILURES,
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

    from decision.files import load_platform, load_workload
    from decision.files.generate.events import FailureModel, availability, failure_lines, failures
    from decision.files.text import write_files
    from decision.model.computer import find_platform, find_workload
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


# ``decision workload carbon`` and ``price``: what a kWh emits and costs by time, as external events.

_KWH_PER_MWH = 1000.0
_CARBON = ("carbon_intensity", "avg_ci", "value")
_PRICE = ("price", "energy_price", "value")

TableFile = Annotated[Path, Argument(help="Table by time, CSV or Parquet.", metavar="FILE", dir_okay=False)]
PriceFor = Annotated[
    Path | None, Option("--for", help="Workload that the table must last for.", metavar="FILE", dir_okay=False)
]
PerMwh = Annotated[bool, Option("--per-mwh", help="The table has prices per MWh.")]


def carbon_command(
    table: TableFile,
    output: OutputFile,
    workload: PriceFor = None,
    time_column: TimeColumn = None,
    column: ColumnName = None,
    begin: Begin = None,
    gaps: GapsOption = Gaps.REFUSE,
    as_json: JsonOption = False,
) -> None:
    """Say what a kWh emits by time, g of CO2, for --events.

    Tables have any columns and any step; those of opendc-traces (timestamp,
    carbon_intensity) and Green-DCC (avg_CI) are known by their names. With -E,
    decision run and compare --metric carbon measure what a run emitted. The file
    has generic events of Batsim, {"type": "carbon_intensity", "timestamp": t,
    "value": g}; a Batsim of your own needs --forward-unknown-events, which decision
    run passes itself.

    Examples:

      decision workload carbon NL-2023.parquet -o carbon.txt

      decision workload carbon DE.csv --for week.json --column avg_CI
          --begin 2024-05-01T00:00:00+02:00 --gaps linear -o carbon.txt
    """
    from decision.model.workload import CARBON

    layout = time_column, column, begin, gaps
    _write(CARBON, table, output, workload, layout, usual=_CARBON, scale=1.0, as_json=as_json)


def price_command(
    table: TableFile,
    output: OutputFile,
    workload: PriceFor = None,
    time_column: TimeColumn = None,
    column: ColumnName = None,
    per_mwh: PerMwh = False,
    begin: Begin = None,
    gaps: GapsOption = Gaps.REFUSE,
    as_json: JsonOption = False,
) -> None:
    """Say what a kWh costs by time, for --events; prices may be below 0.

    As decision workload carbon, for the metric cost. The events are
    {"type": "energy_price", "timestamp": t, "value": price of a kWh}.

    Example:

      decision workload price day-ahead.csv --column EUR --per-mwh -o price.txt
    """
    from decision.model.workload import PRICE

    layout = time_column, column, begin, gaps
    scale = 1.0 / _KWH_PER_MWH if per_mwh else 1.0
    _write(PRICE, table, output, workload, layout, usual=_PRICE, scale=scale, as_json=as_json)


def _write(
    kind: str,
    table: Path,
    output: Path,
    workload: Path | None,
    layout: tuple[str | None, str | None, str | None, Gaps],
    *,
    usual: tuple[str, ...],
    scale: float,
    as_json: bool,
) -> None:
    import msgspec

    from decision.files import load_workload
    from decision.files.events import read_series
    from decision.files.text import write_files
    from decision.model.computer import find_workload
    from decision.model.demand import submit_times
    from decision.model.workload import PRICE

    from .tables import number, print_json
    from .terminal import say

    jobs = load_workload(find_workload(workload)) if workload else None
    until = float(submit_times(jobs).max()) if jobs is not None and jobs.jobs else 0.0
    series = read_series(table, layout_of(*layout), usual, until=until, negative=kind == PRICE)
    rates = series.value * scale
    lines = [
        msgspec.json.encode({"type": kind, "timestamp": time, "value": rate})
        for time, rate in zip(series.time.tolist(), rates.tolist(), strict=True)
    ]
    write_files({output: [b"\n".join([*lines, b""])]})
    if as_json:
        facts = {"path": output, "events": len(lines), "end": series.end, "least": rates.min(), "most": rates.max()}
        print_json(facts)
    else:
        span = f"{number(float(rates.min()))} to {number(float(rates.max()))} per kWh"
        say(f"{output}: {len(lines):,} values, {span}")
