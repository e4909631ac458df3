"""``decision workload preset``: workloads of papers."""

from enum import StrEnum
from typing import Annotated

import typer

from .options import EstimatesOption, HostsOption, JsonOption, NbJobsOption, OutputFile, SeedOption
from .readers import read_range
from .workload_make import save_made, write_made

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
    """Which jobs."""

    A = "a"
    B = "b"


class Price(StrEnum):
    """What the value of a job per host and time step is."""

    QOS = "qos"
    INDEPENDENT = "independent"


class TraceName(StrEnum):
    """Whose trace."""

    ORION = "orion"
    GRAPHITE = "graphite"
    ECONOME = "econome"


Name = Annotated[
    WorkloadName, typer.Option("--workload", help="Workload: 80 % (WL1) or 20 % (WL2) of the jobs on a single node.")
]
Accuracy = Annotated[
    RequestAccuracy,
    typer.Option("--accuracy", help="Run times: as requested, half of it, or a random part, half on average."),
]
Part = Annotated[Half | None, typer.Option("--half", help="Part: the first or the second 1,000 jobs; all by default.")]
SingleShare = Annotated[
    float | None,
    typer.Option("--single", help="Share of jobs on a single node, in place of the workload's.", min=0, max=1),
]
ScaledLoad = Annotated[
    float | None,
    typer.Option("--load", help="Offered load that gaps are scaled to; theirs by default.", min=0.001, max=1000),
]
ClusterName = Annotated[TraceName, typer.Argument(help="Cluster of the trace.")]
Days = Annotated[
    str | None, typer.Option("--days", help="Range of the days that have submissions; all by default.", metavar="A:B")
]
Rate = Annotated[
    float, typer.Option("--rate", help="Requested host time, in percent of the hosts' time.", min=0.001, max=1e6)
]
Largest = Annotated[
    int | None, typer.Option("--most-hosts", help="Size of the largest job; half of all hosts by default.", min=1)
]
LongestSteps = Annotated[
    int, typer.Option("--most-steps", help="Length of the longest job, in time steps.", min=1, max=_MOST)
]
Step = Annotated[float, typer.Option("--step", help="Length of a time step in seconds.", min=0.001, max=1e6)]
HighestValue = Annotated[
    int, typer.Option("--most-value", help="Highest value per host and time step.", min=1, max=_MOST)
]

PriceOption = Annotated[
    Price, typer.Option("--price", help="Value per host and time step: drawn, or growing with the QoS.")
]


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

    from decision.generate.papers.predicted_runtimes import predicted_runtimes

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

    from decision.generate.papers.grid5000_days import grid5000_days, trace_figures
    from decision.generate.papers.grid5000_traces import PUBLISHED_TRACES

    from .tables import print_json
    from .workload_tables import print_trace, trace_rows

    trace = PUBLISHED_TRACES[cluster.value]
    made = grid5000_days(np.random.default_rng(seed), trace, read_range(days, "--days"))
    origin = (
        f"Days like those of Grid'5000's {cluster.value} in DeepScheduling (Casagrande, Koslovski, Miers and Pillon, "
        "Table 1); 0 s is midnight of the first day."
    )
    chosen = cluster.value + (f" --days {days}" if days else "")
    command = f"preset grid5000-like {chosen} --seed {seed}"
    if as_json:
        facts = save_made(output, made, origin, command)
        print_json({**facts, **trace_rows(trace_figures(made, trace.cores), trace)})
        return
    write_made(output, made, origin, command, as_json)
    print_trace(trace_figures(made, trace.cores), trace)


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

    from decision.generate.papers.uniform import GreenModel, green_workload
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

    from decision.estimates import apply_estimates
    from decision.generate.papers.uniform import topology_workload

    rng = np.random.default_rng(seed)
    made = apply_estimates(topology_workload(rng, jobs), estimates, rng)
    origin = "After Optimization of Topology-Aware Job Allocation by Neural Simulated Annealing: uniform jobs."
    command = f"preset topology --nb-jobs {jobs} --seed {seed} --estimates {estimates}"
    write_made(output, made, origin, command, as_json)
