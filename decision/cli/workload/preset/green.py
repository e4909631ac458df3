"""``decision workload preset green``: jobs with value and quality of service."""

from typing import Annotated

import typer

from ..making import HostsOption, JobsOption, OutputOption, SeedOption, write_made

_MOST = 1_000_000  # more are a mistake

RateOption = Annotated[
    float,
    typer.Option(
        "--rate", help="Host-seconds that arrive, in percent of those that the hosts have.", min=0.001, max=1e6
    ),
]
LargestOption = Annotated[
    int | None, typer.Option("--most-hosts", help="Hosts of the largest job; half of all if not given.", min=1)
]
StepsOption = Annotated[int, typer.Option("--most-steps", help="Time steps of the longest job.", min=1, max=_MOST)]
StepOption = Annotated[float, typer.Option("--step", help="Seconds of a time step.", min=0.001, max=1e6)]
ValueOption = Annotated[
    int, typer.Option("--most-value", help="Highest value per host and time step.", min=1, max=_MOST)
]


def green(
    output: OutputOption,
    jobs: JobsOption = 10_000,
    hosts: HostsOption = 10,
    rate: RateOption = 120.0,
    most_hosts: LargestOption = None,
    most_steps: StepsOption = 10,
    step: StepOption = 60.0,
    most_value: ValueOption = 10,
    seed: SeedOption = 0,
) -> None:
    """Make the workload of a green datacenter, after Launchpad.

    Jobs arrive as a Poisson process, need some hosts for some time steps, and
    carry three more fields: value, qos (percent) and deadline (seconds), which
    is when they must be finished: qos percent of the time from the submission
    to it is the job's duration. All choices are uniform; the paper does not
    publish its own.

    Examples:

      decision workload preset green -o green.json --hosts 50 --rate 120
    """
    import numpy as np

    from decision.generate.papers.green import GreenModel, green_workload
    from decision.model.errors import ConfigError

    most = max(1, hosts // 2) if most_hosts is None else most_hosts
    if most > hosts:
        raise ConfigError(f"--most-hosts {most}: there are only {hosts} hosts; give fewer")
    model = GreenModel(
        hosts=hosts, rate=rate / 100, most_hosts=most, most_steps=most_steps, most_value=most_value, step=step
    )
    made = green_workload(np.random.default_rng(seed), jobs, model)
    origin = (
        "After Launchpad (Venkataswamy, Grigsby, Grimshaw and Qi): Poisson arrivals, jobs with value, QoS and deadline."
    )
    chosen = f"--jobs {jobs} --hosts {hosts} --rate {rate:g} --most-hosts {most} --most-steps {most_steps}"
    write_made(output, made, origin, f"preset green {chosen} --step {step:g} --most-value {most_value} --seed {seed}")
