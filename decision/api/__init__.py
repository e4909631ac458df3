"""The functions of ``import decision``: whole runs, comparisons, trainings and environments in one call.

Design
------
Nothing is computed here. Each function checks its arguments (`decision.model.errors`), turns names, paths and
objects into what the packages below take (`given`), calls them, and gives their result a face (`results`): tables as
pandas DataFrames where pandas is installed, pictures as matplotlib figures. Where a platform or a workload is asked
for, a file's path, a shipped one's name or the object itself will do, and where a workload is, a DataFrame of jobs.
Comparisons write objects into files first, which worker processes read and whose content is known again.

Rejected: methods for all that the packages can do. Their own functions are public and take the same objects
(`SimulationResult.record` is a `decision.model.record.RunRecord`).
"""

from .comparisons import advise, compare, evaluate, intervals
from .learning import gates, make_env, policy_from, search, train
from .results import ComparisonResult, SearchResult, SimulationResult
from .simulations import check_policy, read_run, simulate, starts
from .stepped import Simulation

__all__ = [
    "ComparisonResult",
    "SearchResult",
    "Simulation",
    "SimulationResult",
    "advise",
    "check_policy",
    "compare",
    "evaluate",
    "gates",
    "intervals",
    "make_env",
    "policy_from",
    "read_run",
    "search",
    "simulate",
    "starts",
    "train",
]
