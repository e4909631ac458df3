"""``decision workload lublin``: jobs of the Lublin-Feitelson model."""

from enum import StrEnum
from typing import Annotated

import typer

from ..options import read_settings
from .making import EstimatesOption, HostsOption, JobsOption, OutputOption, SeedOption, write_made


class Classes(StrEnum):
    """Which of the model's three fits."""

    WHOLE = "whole"
    BATCH = "batch"
    INTERACTIVE = "interactive"
    BOTH = "both"


ClassesOption = Annotated[
    Classes,
    typer.Option("--classes", help="The fit to all jobs, to one class, or both classes side by side (in 'queue')."),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="A parameter of the model; may be repeated.", metavar="[CLASS.]NAME=VALUE"),
]


def lublin(
    output: OutputOption,
    jobs: JobsOption = 10_000,
    hosts: HostsOption = 256,
    seed: SeedOption = 0,
    classes: ClassesOption = Classes.WHOLE,
    set_: SetOption = None,
    estimates: EstimatesOption = "exact",
) -> None:
    """Make a workload after Lublin and Feitelson (2003).

    Sizes, run times that grow with size, and arrivals with the cycle of the day.
    The defaults are the published ones; sizes follow the number of hosts. The
    parameters for --set, here with the values of the fit to all jobs:

      serial 0.244, power_of_two 0.576: shares of sizes

      size_low 0.8, size_high_below 0, size_medium_below 2.5,
      size_low_share 0.86: the two-stage uniform of log2 of the size

      short_shape 4.2, short_scale 0.94, long_shape 312, long_scale 0.03,
      short_share 0.78, short_share_slope -0.0054, longest 12: the
      hyper-gamma of the logarithm of the run time

      gap_shape 10.2303, gap_scale 0.4871, gap_all_day 1.0225,
      longest_gap 13: the gamma of the logarithm of the time between jobs

      cycle_shape 8.1737, cycle_scale 3.9631: the gamma of the day's cycle

    Examples:

      decision workload lublin -o lublin.json --jobs 10000 --hosts 256

      decision workload lublin -o mixed.json --classes both \\
          --set batch.serial=0.5 --estimates tsafrir
    """
    import numpy as np

    from decision.estimates import apply_estimates
    from decision.generate.lublin import lublin_workload
    from decision.generate.lublin_params import CLASSES, with_settings

    settings = read_settings(set_, "--set")
    rng = np.random.default_rng(seed)
    made = lublin_workload(rng, jobs, hosts, with_settings(CLASSES[classes.value], settings))
    made = apply_estimates(made, estimates, rng)
    changed = "".join(f" --set {name}={value}" for name, value in settings.items())
    origin = "Workload model of Lublin and Feitelson (2003)."
    options = f"--jobs {jobs} --hosts {hosts} --seed {seed} --classes {classes.value}{changed} --estimates {estimates}"
    write_made(output, made, origin, f"lublin {options}")
