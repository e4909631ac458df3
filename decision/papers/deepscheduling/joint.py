"""The joint policy that ships beside DeepScheduling's rules, and the least waste of any shutdown of the same starts.

It was learned from the first 80 % of days like those of each cluster, of which the rest is held out. It is held against
the rule of the grid that wastes least, chosen with hindsight on the days compared, on the same terms: no more switches
than first-fit with a timeout of 5 minutes, and at most 10 % more wait.
"""

from collections.abc import Sequence

import numpy as np

from decision.analysis.waste_bound import waste_bound
from decision.engine.options import EngineOptions
from decision.model.dates import DAY_LEAD, busy_days, of_day
from decision.model.platform import Platform
from decision.model.record import Floats
from decision.model.workload import Workload
from decision.simulation import simulate_workloads

from . import claims
from .claims import Jobs, Statistic, compare_days
from .rules import Days

JOINT, FIRST_FIT = "joint", "first-fit,start=bound,power=idle-timeout"
WAIT = 1.1  # times that of first-fit
_ENERGY = EngineOptions(energy=True)
_TERMS: tuple[tuple[str, Statistic], ...] = (
    ("waste", claims.waste),
    ("wait", claims.pooled_wait),
    ("switches", claims.server_switches),
)


def bounds(policy: str, platform: Platform, workload: Workload, first: int) -> Floats:
    """(D,) joules: `waste_bound` of the schedule of each day from `first` on, 0 before."""
    days = busy_days(workload)
    found = np.zeros(len(days))
    for k, day in enumerate(days[first:], first):
        record = simulate_workloads(platform, [of_day(workload, day)], policy, engine_options=_ENERGY)
        found[k] = waste_bound(record, platform, DAY_LEAD)
    return found


def joint_rows(test: dict[str, list[Days]], rule: str, jobs: Jobs, samples: int) -> list[tuple[str, str, str]]:
    """Part of a table: the joint policy beside first-fit, a rule of the grid, and the least waste of any shutdown."""
    rows = [
        (
            f"{what}, joint against first-fit",
            "",
            str(compare_days(statistic, test[JOINT], test[FIRST_FIT], jobs, samples)),
        )
        for what, statistic in _TERMS
    ]
    rows.append(("best rule with hindsight and at most 10 % more wait", "", rule or "none"))
    if rule:
        against: Sequence[Days] = test[rule]
        change = compare_days(claims.waste, test[JOINT], against, jobs, samples)
        rows.append(("waste, joint against this rule", "", str(change)))
    for name, label in ((FIRST_FIT, "first-fit"), (JOINT, "joint")):
        (days,) = test[name]
        rows.append((f"waste over waste_bound, {label}", "", f"{days.waste.sum() / days.bound.sum():.2f}"))
    return rows
