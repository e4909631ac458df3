"""`SchedulerVecEnv`: the native vector environment as Stable-Baselines3 has vector environments; needs that package.

::

    from sb3_contrib import MaskablePPO
    from decision.rl.envs.sb3 import SchedulerVecEnv

    MaskablePPO("MlpPolicy", SchedulerVecEnv(16, workload="log.swf", head=16, tail=4)).learn(100_000)
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from .gym import SchedulerVectorEnv


class SchedulerVecEnv(VecEnv):
    """N environments for Stable-Baselines3's algorithms, sb3-contrib's MaskablePPO included.

    The info of an environment whose episode ended has ``terminal_observation``, ``TimeLimit.truncated``, ``episode``
    (``r`` and ``l``, for the algorithms' own logs) and ``metrics``.

    Args:
        num_envs: N.
        options: of `SchedulerVectorEnv`.
    """

    def __init__(self, num_envs: int, **options: Any) -> None:
        self._envs = SchedulerVectorEnv(num_envs, **options)
        self.setup = self._envs.setup
        self._actions = np.zeros(num_envs, np.int64)
        super().__init__(num_envs, self._envs.single_observation_space, self._envs.single_action_space)

    def reset(self) -> VecEnvObs:
        """New episodes everywhere, with the seed and options that were set before."""
        seeds = None if all(seed is None for seed in self._seeds) else self._seeds
        first = [options.get("first", -1) for options in self._options]
        observation, _ = self._envs.reset(seed=seeds, options={"first": first})
        self._reset_seeds()
        self._reset_options()
        return observation

    def step_async(self, actions: NDArray[Any]) -> None:
        """Remember the choices, which `step_wait` makes."""
        self._actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        """Make the choices that were remembered."""
        observation, reward, terminated, truncated, info = self._envs.step(self._actions)
        over = terminated | truncated
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(over).tolist():
            metrics = {name: float(column[i]) for name, column in info["metrics"].items()}
            infos[i] = {
                "terminal_observation": info["final_obs"][i],
                "TimeLimit.truncated": bool(truncated[i]),
                "episode": {"r": metrics["return"], "l": int(metrics["length"])},
                "metrics": metrics,
            }
        return observation, reward, over, infos

    def action_masks(self) -> NDArray[np.bool_]:
        """Which actions are valid now, (N, A)."""
        return self._envs.action_masks()

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """``action_masks`` of the environments; they have no other method of their own."""
        if method_name != "action_masks":
            raise AttributeError(f"the environments have no method {method_name} of their own")
        masks = self.action_masks()
        return [masks[i] for i in self._get_indices(indices)]

    def has_attr(self, attr_name: str) -> bool:
        """Whether the environments have an attribute."""
        return attr_name == "action_masks" or hasattr(self._envs, attr_name)

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """An attribute, which all environments share."""
        return [getattr(self._envs, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Refused: the environments share all that they have."""
        raise AttributeError(f"{attr_name} cannot be set: the environments share all that they have")

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Any = None) -> list[bool]:
        """False of each: no environment is wrapped."""
        return [False for _ in self._get_indices(indices)]

    def close(self) -> None:
        """End the threads that step the environments."""
        self._envs.close()


DbfVecEnv = SchedulerVecEnv
