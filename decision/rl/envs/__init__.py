"""Gymnasium environments of learned schedulers; importing this package registers them.

Each scheduler of `decision.rl.schedulers` that chooses step by step has one, ``decision/ID-v0``: ``decision/DBF-v0``
(`DbfEnv`, `DbfVectorEnv`), ``decision/RLScheduler-v0`` and so on. Docstrings of their classes
(``help(decision.rl.envs.DbfEnv)``) have the tables of observations, actions and rewards.

::

    import gymnasium, decision.rl.envs

    env = gymnasium.make("decision/DBF-v0", workload="log.swf", head=16, tail=4)
    envs = gymnasium.make_vec("decision/DBF-v0", 64, "vector_entry_point", workload="log.swf", head=16, tail=4)

Design
------
A step runs the embedded engine (`decision.engine`) and the decision points and kernels of a deployed policy
(`decision.rl.schedulers`), so that what was learned is what will run. `setup` reads options, and lets a workload repeat
without end; `environment` has one environment's arrays, its sums and its metrics, `episode` the compiled loop; `batch`
runs many side by side, and any policy over the same episodes; `external` lets episodes run in a Batsim in place of the
embedded engine; `gym` has their Gymnasium classes, `sb3` that of
Stable-Baselines3; `demonstrations` turns schedules into choices to learn from.

All arrays are made once, with room for the worst that an episode can come to, so that nothing in a step allocates or
calls Python. Environments reach a kernel as addresses of their arrays: one call steps any number. The scheduler's
kernels are called by address, too, so that the loop is compiled once for all schedulers. A saved state is the choices
made since the episode began; making them again is quicker than writing all arrays.

Rejected: numba's parallel loops (one of their threading layers stops the process when two threads of Python enter, and
a learner evaluates while it trains); processes (copies); a key ``episode`` in the info, which Gymnasium's and
Stable-Baselines3's wrappers use for themselves.
"""

from typing import Any

import gymnasium

from decision.rl.schedulers.base import ChoosingScheduler, Scheduler, for_each_record

from .batch import Outputs, evaluate, random_rows, write_metrics
from .environment import EPISODE_METRICS, TAIL_METRICS, PlacedJobs
from .gym import SchedulerEnv, SchedulerVectorEnv
from .setup import Setup, equal_hosts, make_setup

DbfEnv: type[SchedulerEnv]
DbfVectorEnv: type[SchedulerVectorEnv]


def _add_environment(scheduler: Scheduler) -> None:
    """Classes with the scheduler's docstring, here by the name of its record; and its id in Gymnasium's registry."""
    if not isinstance(scheduler, ChoosingScheduler):
        return
    name, documented = type(scheduler).__name__, type(scheduler).__doc__
    options = {"encoder": next(iter(scheduler.observations))}
    bases: dict[str, Any] = {f"{name}Env": SchedulerEnv, f"{name}VectorEnv": SchedulerVectorEnv}
    for class_name, base in bases.items():
        text = f"{documented}\n    {base.__doc__}"
        more = {"__doc__": text, "__module__": __name__, "preset_options": options}
        globals()[class_name] = type(class_name, (base,), more)
    gymnasium.register(
        f"decision/{scheduler.env_id}-v0",
        entry_point=f"{__name__}:{name}Env",
        vector_entry_point=f"{__name__}:{name}VectorEnv",
    )


for_each_record(_add_environment)

__all__ = [
    "EPISODE_METRICS",
    "TAIL_METRICS",
    "DbfEnv",
    "DbfVectorEnv",
    "Outputs",
    "PlacedJobs",
    "SchedulerEnv",
    "SchedulerVectorEnv",
    "Setup",
    "equal_hosts",
    "evaluate",
    "make_setup",
    "random_rows",
    "write_metrics",
]
