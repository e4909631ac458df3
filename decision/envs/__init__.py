"""Gymnasium environments; importing this package registers them.

``decision/DBF-v0`` is deep backfilling (`DbfEnv`). Two others are those of learned schedulers that it is compared with;
`decision.features` has their choices and observations, and both are paid at the end of an episode alone:

- ``decision/RLScheduler-v0``: which of 128 jobs is next; minus the mean bounded slowdown of 256 jobs.
- ``decision/Inspector-v0`` (SchedInspector): whether the next job of an order, ``base="sjf"`` or ``"f1"``, is accepted
  (0) or refused (1); by what share the mean bounded slowdown of 128 jobs is lower than if nothing was refused.

In both no job comes after those of the episode, unless ``online=True``.

::

    import gymnasium, decision.envs

    env = gymnasium.make("decision/DBF-v0", workload="log.swf", head=16, tail=4)
    envs = gymnasium.make_vec("decision/DBF-v0", 64, "vector_entry_point", workload="log.swf", head=16, tail=4)

Design
------
There is no second simulator: a step runs the embedded engine (`decision.engine`) and the cycles and observations of a
deployed policy (`decision.features`), so that what was learned is what will run. `trace` lets a workload go on for
ever, `episode` is the compiled loop, `tally` its sums, rewards and metrics, `batch` runs many side by side, `vector`
and `single` are Gymnasium's faces of it, `sb3` that of Stable-Baselines3, `evaluation` runs heuristics over the same
episodes, and `placed` reads from a finished one what each job waited.

All arrays are made once, with room for the worst that an episode can come to, so that nothing in a step allocates or
comes up to Python. Environments are told to a kernel by the addresses of their arrays: one call steps any number.
A saved state is the choices made since the episode began; making them again is quicker than writing all arrays.

Rejected: numba's parallel loops (one of their threading layers stops the process when two threads of Python enter, and
a learner evaluates while it trains); processes (copies); a key ``episode`` in the info, which Gymnasium's and
Stable-Baselines3's wrappers use for themselves.
"""

import gymnasium

from .evaluation import evaluate
from .outputs import Outputs
from .placed import PlacedJobs
from .setup import Setup, equal_hosts, make_setup
from .single import DbfEnv
from .tally import METRICS
from .vector import DbfVectorEnv

for _name, _options in {
    "DBF": {},
    "RLScheduler": {"encoder": "rlscheduler", "head": 128, "jobs": 256, "online": False},
    "Inspector": {"encoder": "inspector", "jobs": 128, "online": False},
}.items():
    gymnasium.register(
        f"decision/{_name}-v0",
        entry_point="decision.envs.single:DbfEnv",
        vector_entry_point="decision.envs.vector:DbfVectorEnv",
        kwargs=_options,
    )

__all__ = [
    "METRICS",
    "DbfEnv",
    "DbfVectorEnv",
    "Outputs",
    "PlacedJobs",
    "Setup",
    "equal_hosts",
    "evaluate",
    "make_setup",
]
