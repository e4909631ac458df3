"""Days of a cluster of servers."""

import msgspec
import numpy as np

from decision.engine.rules import EngineOptions
from decision.model.dates import DAY
from decision.model.workload import Workload

from .env_toys import workload

ENERGY = EngineOptions(energy=True)


def busy_days_of(days: int, seed: int = 0, hosts: int = 4) -> Workload:
    """Days with 30 jobs each of four users, in whole seconds."""
    rng, count = np.random.default_rng(seed), 30 * days
    submit = np.sort(np.repeat(np.arange(days), 30) * DAY + rng.integers(0, 8 * 3600, count))
    wall = rng.integers(60, 7200, count)
    run = np.maximum(1, (wall * rng.choice([0.02, 0.3, 1.0, 1.1], count)).astype(int))
    columns = submit.tolist(), rng.integers(1, hosts + 1, count).tolist(), wall.tolist(), run.tolist()
    made = workload(hosts, *zip(*columns, strict=True))
    owned = [msgspec.structs.replace(job, user=f"u{rng.integers(4)}") for job in made.jobs]
    return msgspec.structs.replace(made, jobs=owned)
