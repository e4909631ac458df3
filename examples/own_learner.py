"""Train with a library of one's own choice, here sb3-contrib's MaskablePPO, and compare with heuristics.

Needs `pip install sb3-contrib`. 2,000 steps take some seconds and teach little.
"""

import numpy as np
from sb3_contrib import MaskablePPO

import decision as d
from decision.rl.envs.sb3 import SchedulerVecEnv
from decision.rl.schedulers import ChoosingPolicy

WINDOW = {"head": 8, "tail": 2}

envs = SchedulerVecEnv(8, encoder="dbf", workload="lublin_256", platform="cluster256", jobs=100, **WINDOW)
model = MaskablePPO("MlpPolicy", envs, n_steps=64, seed=1, device="cpu").learn(2_000)


def choose(observation: np.ndarray, mask: np.ndarray) -> int:
    """The likeliest of the valid actions."""
    action, _ = model.predict(observation, action_masks=mask, deterministic=True)
    return int(action)


encoder = d.make_env("dbf", "cluster256", "lublin_256", **WINDOW).unwrapped.encoder
mine = ChoosingPolicy(encoder, choose, "mine")
result = d.compare(
    "cluster256", "lublin_256", ["easy", mine], metrics=["wait", "bounded_slowdown"], windows=5, length=50
)
print(result.table)
