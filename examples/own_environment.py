"""Reward and observation of one's own, learned by MaskablePPO, compared with intervals, and in a Batsim's place.

Needs `pip install sb3-contrib`. 2,000 steps take some seconds and teach little.
"""

import numpy as np
from sb3_contrib import MaskablePPO

import decision as d
from decision.rl.envs.sb3 import SchedulerVecEnv

CASE, JOBS, LONGEST = ("cluster256", "lublin_256"), 8, 36_000.0


class FirstEight(d.Environment):
    """Which of the first eight jobs starts; the actions are DBF's."""

    def observe(self, view: d.ClusterView) -> list[float]:
        """Free hosts; sizes and walltimes of the jobs."""
        jobs, seen = view.queue[:JOBS], np.zeros((2, JOBS))
        seen[:, : len(jobs)] = jobs.size / view.nb_hosts, np.minimum(jobs.walltime / LONGEST, 1.0)
        return [view.nb_free / view.nb_hosts, *seen.ravel()]

    def reward(self, view: d.ClusterView) -> float:
        """Minus the hours that jobs waited since the last choice."""
        return -len(view.queue) * view.elapsed / 3600


ENV = d.make_env(FirstEight, *CASE, num_envs=8, head=JOBS, tail=0, jobs=100)


def learned() -> object:
    """For decision run and serve: --policy ./own_environment.py:learned."""
    return d.policy_from(ENV, MaskablePPO.load("own.zip"), "learned")


if __name__ == "__main__":
    MaskablePPO("MlpPolicy", SchedulerVecEnv(8, setup=ENV.setup), n_steps=64, seed=1).learn(2_000).save("own.zip")
    print(d.compare(*CASE, ["easy", learned()], metrics=["wait"], jobs=slice(0, 300)).table.round(3).to_string())
    print("now: decision serve --policy ./own_environment.py:learned")
