"""``decision workload preset predicted-runtimes``: WL1 and WL2."""

from enum import StrEnum
from typing import Annotated

import typer

from ..making import OutputOption, SeedOption, write_made


class Name(StrEnum):
    """Which workload."""

    WL1 = "WL1"
    WL2 = "WL2"


class Accuracy(StrEnum):
    """Run times relative to requested times."""

    EXACT = "100"
    HALF = "050"
    RANDOM = "RND"


class Half(StrEnum):
    """Which jobs."""

    A = "a"
    B = "b"


NameOption = Annotated[Name, typer.Option("--workload", help="80 % (WL1) or 20 % (WL2) of the jobs on a single node.")]
AccuracyOption = Annotated[
    Accuracy, typer.Option("--accuracy", help="Run times: as requested, half of it, or a random part, half on average.")
]
HalfOption = Annotated[Half | None, typer.Option("--half", help="The first or the second 1,000 jobs only.")]


def predicted_runtimes(
    output: OutputOption,
    workload: NameOption = Name.WL1,
    accuracy: AccuracyOption = Accuracy.RANDOM,
    half: HalfOption = None,
    seed: SeedOption = 0,
) -> None:
    """Make WL1 and WL2 of Takizawa, Nomura and Matsuba.

    2,000 jobs of the Lublin-Feitelson model for 256 nodes: requested times of at
    most 6 h and 0.5 h on average, at most 0.5 h and 100 s on average between
    jobs. The paper learns from half a and tests on half b.

    Examples:

      decision workload preset predicted-runtimes -o WL1_RNDa.json \\
          --workload WL1 --accuracy RND --half a
    """
    import numpy as np

    from decision.generate.papers.predicted_runtimes import predicted_runtimes

    part = half.value if half else ""
    made = predicted_runtimes(np.random.default_rng(seed), workload.value, accuracy.value, part)
    origin = (
        f"{workload.value}_{accuracy.value}{part} after Takizawa, Nomura and Matsuba, PPO for job scheduling with "
        "predicted run times: Lublin-Feitelson jobs for 256 nodes."
    )
    chosen = f"--workload {workload.value} --accuracy {accuracy.value}" + (f" --half {part}" if part else "")
    write_made(output, made, origin, f"preset predicted-runtimes {chosen} --seed {seed}")
