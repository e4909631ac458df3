"""`DbfEnv`: one cluster, as Gymnasium has environments."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from .batch import Batch
from .outputs import Outputs, new_outputs
from .setup import Setup, make_setup
from .tally import METRICS
from .vector import Observation, observation_space


class DbfEnv(gymnasium.Env):
    """Deep backfilling (DBF): which jobs of a split window of the queue start now.

    Wang, Harwood and Rodriguez, Deep Back-Filling: a Split Window Technique for Deep Online Cluster Job Scheduling,
    HPCC 2022.

    Observation, version 1, all in [0, 1], f32 (D,)::

        0 .. N - 1        remaining requested time of each core's job / longest runtime, 0 where it is free
        N + 4 k           of slot k of the window: cores / N
        N + 4 k + 1           requested runtime / longest runtime
        N + 4 k + 2           time waited / longest wait
        N + 4 k + 3           1 where there is a job, else all four are 0

    Slots 0 .. head - 1 are the first jobs of the queue, the `tail` slots after them the last ones, the newest first; no
    job is in two slots. With the encoder ``dbf-pools`` shares of all cores stand for the N cores
    (`decision.features.observe`).

    Actions: slot 0 .. M - 1, and M, Fwd. A valid choice starts the job on the free cores with the lowest numbers.
    Anything else (Fwd, an empty slot, a job that does not fit) ends the cycle. A cycle begins at each arrival (jobs
    that arrive together are seen one after the other) and at each instant at which jobs end.

    Reward: 0 for a valid choice, else R(t) = -w1 (1 - eta) - w2 L / Lmax - w3 W / Wmax: the share of idle cores, the
    queue's length and the time waited by its jobs, each of the two over its maximum since the episode began.

    Episode: begins on an idle cluster with the arrival of a random job of the trace, and ends when `jobs` jobs have
    been placed. Jobs go on to arrive; after the last the trace begins again. It is truncated when four times as many
    have come, or (not `online`) when nothing can happen any more.

    Masks: ``info["action_mask"]`` i8 (A,), `action_masks()`, and in the observation with `dict_observation`. Fwd is
    masked where the cluster is idle and a job could start.

    At the end ``info["metrics"]`` has what `decision.envs.METRICS` names.

    Args:
        dict_observation: whether observations are dicts of ``observation`` and ``action_mask``.
        options: of `decision.envs.make_setup`, or a finished ``setup``.

    Raises:
        ConfigError: for options that make no sense.
    """

    metadata = {"render_modes": []}

    def __init__(self, *, setup: Setup | None = None, dict_observation: bool = False, **options: Any) -> None:
        self.setup, self._as_dict = setup or make_setup(**options), dict_observation
        self.encoder = self.setup.encoder
        self.observation_space = observation_space(self.encoder.shape, self.encoder.actions, dict_observation)
        self.action_space = spaces.Discrete(self.encoder.actions)
        self._batch = Batch(1, self.setup.trace, self.setup.platform, self.setup.rules, self.encoder, 1)
        self._mask = np.ones(self.encoder.actions, np.int8)
        self._seeded = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """A new episode; ``options["first"]`` is the job of the trace with which it begins, -1 for a random one."""
        super().reset(seed=seed)
        if seed is not None or not self._seeded:
            self._batch.seed([int(self.np_random.integers(2**31)) if seed is None else seed])
            self._seeded = True
        first = np.array([(options or {}).get("first", -1)], np.int64)
        out = self._new_outputs()
        self._batch.reset(first, out)
        return self._observation(out), {"action_mask": self._mask}

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """One choice."""
        out = self._new_outputs()
        self._batch.step(np.array([action], np.int64), False, out)
        terminated, truncated = bool(out.terminated[0]), bool(out.truncated[0])
        observation = self._observation(out)
        info: dict[str, Any] = {"action_mask": self._mask}
        if terminated or truncated:
            info["metrics"] = dict(zip(METRICS, self._batch.metrics[0].tolist(), strict=True))
        return observation, float(out.reward[0]), terminated, truncated, info

    def _new_outputs(self) -> Outputs:
        return new_outputs(1, *self.encoder.shape, self.encoder.actions)

    def _observation(self, out: Outputs) -> Observation:
        self._mask = out.mask[0]
        numbers = out.observation[0]
        return {"observation": numbers, "action_mask": self._mask} if self._as_dict else numbers

    def action_masks(self) -> NDArray[np.bool_]:
        """Which actions are valid now, (A,)."""
        return self._mask.astype(np.bool_)
