"""An advice made by hand."""

import numpy as np

from decision.experiments.advise import METRIC_NAMES, Advice, AdviceRow
from decision.experiments.audit import Unsimulated
from decision.experiments.statistics import Estimate

ADVISED, BASELINE = "f3+easy,guard=1.5x", "easy"


def advice_row(name: str, wait: float) -> AdviceRow:
    return AdviceRow(
        policy=name,
        metrics={metric: Estimate(wait, 0.9 * wait, 1.1 * wait) for metric in METRIC_NAMES},
        change={metric: Estimate(-0.53, -0.6, -0.4) for metric in ("wait", "bounded_slowdown")},
        longest_wait=[1.2, 1.3],
        keeps_bound=True,
    )


def sample_advice(begin: float | None = 736_992_000.0, scale: float = 1.0) -> Advice:
    """Waits of some 6 hours under the baseline; the clock showed Monday 1993-05-10 00:00 when blocks begin."""
    weeks = {"baseline": [9e3, 2e4, 3e4], "advised": [5e3, 1e4, 2e4]}
    classes = {"baseline": np.linspace(1e3, 9e4, 9).tolist(), "advised": np.linspace(9e2, 9e4, 9).tolist()}
    return Advice(
        policy=ADVISED,
        baseline=BASELINE,
        change=advice_row(ADVISED, 1.0).change,
        rows=[advice_row(BASELINE, 21_600 * scale), advice_row(ADVISED, 10_000 * scale)],
        cannot=["the log is short"],
        better="decision slurm agree CASE",
        not_simulated=[Unsimulated(what="partitions", jobs=7, share=0.5, values={"debug": 4}, meant="<b>none</b>")],
        sentence=f"Use {ADVISED}: the mean wait is 53 % shorter than under {BASELINE}.",
        log={"workload": "log.swf", "jobs": 2500, "block": "week", "load": 0.81},
        payers=[],
        pictures={
            "weeks": weeks,
            "jobs": [100, 200, 150],
            "block_seconds": 7 * 86_400.0,
            "begin": begin,
            "classes": classes,
            "class_names": [
                f"{size} {run}" for size in ("small", "middle", "large") for run in ("short", "ml", "long")
            ],
            "plane": {BASELINE: [21_600.0, 480_000.0], ADVISED: [10_000.0, 500_000.0], "sjf": [9_000.0, 2e6]},
            "bound": 1.5,
        },
    )
