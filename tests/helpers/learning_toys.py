"""Small vector environments whose best policy is known."""

import numpy as np
from gymnasium.spaces import Box, Discrete


class TwoQueues:
    """Two queues, one server: by the c-mu rule the dear queue is served first.

    Action 0 and 1 serve a queue (masked where it is empty), 2 idles. A job arrives in each step with probability 0.45
    in either queue. A job that waits costs 4 per step in queue 1, and 1 in queue 0; the reward is minus a tenth of it.
    """

    ROOM = 30

    def __init__(self, num_envs, limit=50):
        self.num_envs, self._limit = num_envs, limit
        self.single_observation_space, self.single_action_space = Box(0, 1, (2,), np.float32), Discrete(3)

    def reset(self, *, seed=None):
        self._rng = np.random.default_rng(seed)
        self._length = np.zeros((self.num_envs, 2), np.int64)
        self._time = np.zeros(self.num_envs, np.int64)
        self._cost = np.zeros(self.num_envs)
        return self._look(), {"action_mask": self._mask()}

    def step(self, actions):
        rows = np.flatnonzero(actions < 2)
        self._length[rows, actions[rows]] -= 1
        arrived = self._rng.random((self.num_envs, 2)) < 0.45
        self._length = np.minimum(self._length + arrived, self.ROOM)
        cost = self._length @ [0.1, 0.4]
        self._cost += cost
        self._time += 1
        ended = self._time >= self._limit
        info = {"final_obs": self._look(), "metrics": {"cost": self._cost.copy()}, "_metrics": ended}
        self._length[ended], self._time[ended], self._cost[ended] = 0, 0, 0.0
        info["action_mask"] = self._mask()
        none = np.zeros(self.num_envs, bool)
        return self._look(), -cost.astype(np.float32), none, ended, info

    def close(self):
        """Nothing is held."""

    def get_state(self):
        words = self._rng.bit_generator.state
        return {"length": self._length, "time": self._time, "cost": self._cost, "rng": words}

    def set_state(self, state):
        self._length, self._time, self._cost = (state[k].copy() for k in ("length", "time", "cost"))
        self._rng.bit_generator.state = state["rng"]

    def _look(self):
        return (self._length / self.ROOM).astype(np.float32)

    def _mask(self):
        return np.column_stack([self._length > 0, np.ones(self.num_envs, bool)]).astype(np.int8)


class Corridor:
    """Walk right (action 1) along six cells to a reward of 1; walking left ends nothing. One step costs 0.01."""

    CELLS = 6

    def __init__(self, num_envs):
        self.num_envs = num_envs
        self.single_observation_space, self.single_action_space = Box(0, 1, (1,), np.float32), Discrete(2)

    def reset(self, *, seed=None):
        self._cell = np.zeros(self.num_envs, np.int64)
        return self._look(), {"action_mask": np.ones((self.num_envs, 2), np.int8)}

    def step(self, actions):
        self._cell = np.maximum(self._cell + np.where(actions == 1, 1, -1), 0)
        done = self._cell == self.CELLS
        info = {"final_obs": self._look(), "action_mask": np.ones((self.num_envs, 2), np.int8)}
        self._cell[done] = 0
        return self._look(), np.where(done, 1, -0.01).astype(np.float32), done, np.zeros(self.num_envs, bool), info

    def close(self):
        """Nothing is held."""

    def get_state(self):
        return {"cell": self._cell}

    def set_state(self, state):
        self._cell = state["cell"].copy()

    def _look(self):
        return (self._cell[:, None] / self.CELLS).astype(np.float32)
