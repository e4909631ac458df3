"""The regression as kernels predicts as the one in Python does."""

import numpy as np
import pytest

from decision.policies.runtimes.kernels import learn_end, new_regression, predict, room_for_habits
from decision.policies.runtimes.predictors import Regression


def test_kernels_predict_what_the_predictor_in_python_predicts():
    rng, memory, twin = np.random.default_rng(5), new_regression(room_for_habits(600)), Regression()
    waiting: list[tuple[int, int, float, float]] = []
    predicted = []
    for i in range(600):
        user, size = int(rng.integers(0, 40)), int(2 ** rng.integers(0, 3))
        job = (user, size, float(rng.choice([600.0, 3600.0, np.inf, 86400.0])), 500.0 * i)
        predicted.append((predict(memory, *job), twin.predict(str(user), *job[1:])))
        waiting.append(job)
        if rng.random() < 0.8:
            over = waiting.pop(int(rng.integers(len(waiting))))
            runtime = min(float(rng.lognormal(4 + over[0] / 2, 1)), over[2])
            learn_end(memory, *over, runtime)
            twin.observe(str(over[0]), *over[1:], runtime)
    own, other = np.array(predicted).T
    assert np.isfinite(own).sum() > 500
    assert own == pytest.approx(other, rel=1e-6)


def test_what_a_user_runs_again_is_predicted():
    memory = new_regression(room_for_habits(600))
    for i in range(600):
        learn_end(memory, i % 3, 4, 3600.0, 1000.0 * i, (30.0, 300.0, 3000.0)[i % 3])
    assert [predict(memory, user, 4, 3600.0, 601000.0) for user in range(3)] == pytest.approx([30, 300, 3000], rel=0.15)
