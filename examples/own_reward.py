"""Give an environment another reward: minus the jobs that wait. Needs gymnasium."""

from typing import Any

import gymnasium

import decision as d


class FewWaiting(gymnasium.Wrapper):
    """The state's arrays are internal: their names may change."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One choice, and how many jobs wait after it."""
        observation, _, terminated, truncated, info = self.env.step(action)
        return observation, -float(self.unwrapped.state.nb_queued), terminated, truncated, info


env = FewWaiting(d.make_env("dbf", "cluster256", "lublin_256", head=8, tail=2, jobs=100))
observation, info = env.reset(seed=1)
total, over = 0.0, False
while not over:
    first_valid = int(info["action_mask"].argmax())
    observation, reward, terminated, truncated, info = env.step(first_valid)
    total, over = total + reward, terminated or truncated
print(f"reward {total:,.0f}, mean wait {info['metrics']['placed_waiting_time']:,.0f} s")
