"""``decision compare --worth``: what predictions do to policies, against walltimes and perfect predictions."""

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from decision.analysis.comparison import MeasuredRun, PolicyComparison
from decision.formats.files import utf8, write_files

from .comparison_plan import ComparisonPlan, contender, simulated, twins


class PredictionsWorth(msgspec.Struct, frozen=True, kw_only=True):
    """What predictions do to a metric of a policy, as means over its runs on a workload."""

    workload: str
    policy: str
    metric: str
    walltimes: float  # the policy by walltimes
    predictions: float  # as it is
    perfect: float  # by perfect predictions
    recovered: float  # share of the way from walltimes to perfect predictions; nan where there is none


def worth_of_predictions(plan: ComparisonPlan, comparison: PolicyComparison) -> list[PredictionsWorth]:
    """What each policy's predictions are worth, by workload, policy on an engine, and metric."""
    found: dict[tuple[str, str], list[MeasuredRun]] = {}
    for run in comparison.outcomes:
        found.setdefault((run.workload, run.contender), []).append(run)
    rows = []
    metrics = dict.fromkeys(row.metric for row in comparison.rows)
    for workload in dict.fromkeys(run.workload for run in comparison.outcomes):
        for policy in simulated(plan):
            plain, perfect = twins(plan, policy)
            for engine in plan.engines:
                three = [found[workload, contender(plan, name, engine)] for name in (plain.name, policy, perfect.name)]
                for metric in metrics:
                    values = [float(np.mean([run.metrics.get(metric, math.nan) for run in runs])) for runs in three]
                    rows.append(_worth(workload, contender(plan, policy, engine), metric, *values))
    return rows


def _worth(
    workload: str, policy: str, metric: str, walltimes: float, predictions: float, perfect: float
) -> PredictionsWorth:
    gap = walltimes - perfect
    return PredictionsWorth(
        workload=workload,
        policy=policy,
        metric=metric,
        walltimes=walltimes,
        predictions=predictions,
        perfect=perfect,
        recovered=(walltimes - predictions) / gap if gap else math.nan,
    )


def write_worth(path: Path, rows: Sequence[PredictionsWorth]) -> None:
    """Write the rows as CSV. Raises ConfigError if the file cannot be written."""
    columns = PredictionsWorth.__struct_fields__
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([getattr(row, column) for column in columns] for row in rows)
    write_files({path: [utf8(text.getvalue())]})
