"""A cluster that was rewound simulates as a new one does."""

import numpy as np
from helpers.env_toys import busy, setup

from decision.rl.envs import DbfVectorEnv


def test_an_episode_after_others_is_the_one_that_a_new_environment_has():
    fresh, used = (DbfVectorEnv(1, setup=setup(busy(200))) for _ in range(2))
    rng = np.random.default_rng(0)
    used.reset(seed=1)
    for _ in range(700):
        used.step(rng.integers(7, size=1))
    (observation, info), (again, _) = (envs.reset(options={"first": 33}) for envs in (fresh, used))
    for _ in range(150):
        assert np.array_equal(observation, again)
        action = info["action_mask"].argmax(axis=1)
        observation, reward, *_, info = fresh.step(action)
        again, repeated, *_ = used.step(action)
        assert np.array_equal(reward, repeated)
