"""CMA-ES on functions whose minimum is known."""

import numpy as np
import pytest

from decision.rl.learning.evolution import CmaEs


def minimise(function, start, generations, population=12, seed=0):
    rng, search = np.random.default_rng(seed), CmaEs(np.array(start, float), 0.5, population)
    for _ in range(generations):
        search.tell(np.array([function(x) for x in search.ask(rng)]))
    return search


def ellipsoid(x):
    """Axes a thousand times as long as others, and none along a coordinate."""
    n = len(x)
    rotation, _ = np.linalg.qr(np.random.default_rng(5).standard_normal((n, n)))
    return float((10 ** np.linspace(0, 6, n) * (rotation @ (x - 1)) ** 2).sum())


def rosenbrock(x):
    return float((100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum())


@pytest.mark.parametrize("function", [ellipsoid, rosenbrock])
def test_the_minimum_of_an_ill_conditioned_function_is_found(function):
    assert minimise(function, [0.0] * 6, 400).mean == pytest.approx(np.ones(6), abs=1e-6)


def test_only_the_order_of_values_counts():
    plain = minimise(rosenbrock, [0.0] * 4, 50)
    bent = minimise(lambda x: np.arctan(rosenbrock(x)) * 7 - 3, [0.0] * 4, 50)
    assert np.array_equal(plain.mean, bent.mean)


def test_noise_does_not_keep_it_from_the_minimum():
    noise = np.random.default_rng(9)
    found = minimise(lambda x: ((x - 3) ** 2).sum() + 0.1 * noise.standard_normal(), [0.0] * 5, 300)
    assert found.mean == pytest.approx(np.full(5, 3.0), abs=0.4)


def test_it_goes_on_from_a_state_as_if_it_had_never_stopped():
    whole, rng = minimise(rosenbrock, [0.0] * 3, 20), np.random.default_rng(0)
    first = CmaEs(np.zeros(3), 0.5, 12)
    for _ in range(8):
        first.tell(np.array([rosenbrock(x) for x in first.ask(rng)]))
    again = CmaEs(np.full(3, 9.0), 2.0, 12)
    again.restore(first.state())
    for _ in range(12):
        again.tell(np.array([rosenbrock(x) for x in again.ask(rng)]))
    assert np.array_equal(again.mean, whole.mean)
    assert (again.spread, again.generation) == (whole.spread, 20)
