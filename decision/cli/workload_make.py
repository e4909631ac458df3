"""``decision workload lublin``: workloads of a model; and how made workloads are written."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import EstimatesOption, HostsOption, JsonOption, NbJobsOption, OutputFile, SeedOption
from .readers import read_pairs

if TYPE_CHECKING:
    from decision.model.workload import Workload


class JobClasses(StrEnum):
    """Which of the model's three fits."""

    WHOLE = "whole"
    BATCH = "batch"
    INTERACTIVE = "interactive"
    BOTH = "both"


Classes = Annotated[
    JobClasses,
    typer.Option("--classes", help="Fit: to all jobs, to one class, or both classes together (named in 'queue')."),
]
Parameters = Annotated[
    list[str] | None, typer.Option("--set", help="Model parameter; may be repeated.", metavar="[CLASS.]NAME=VALUE")
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

    from decision.estimates import apply_estimates
    from decision.generate.lublin import lublin_workload
    from decision.generate.lublin_parameters import CLASSES, with_settings

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

    from decision.formats import write_workload

    description = f"{origin} Made, not recorded: decision workload {command}"
    write_workload(path, msgspec.structs.replace(workload, description=description))
    span = workload.jobs[-1].submit_time - workload.jobs[0].submit_time
    return {"path": path, "jobs": len(workload.jobs), "hosts": workload.nb_res, "span": span, "command": command}
