"""CMA-ES: evolution with a normal distribution that adapts its covariance matrix.

Hansen, The CMA evolution strategy: a tutorial (arXiv 1604.00772), with its defaults and positive weights only; the
numbers of its equations are in the comments. Read `CmaEs.tell` from top to bottom. Of more than MOST_FULL numbers only
the variances are adapted, and so faster (Ros and Hansen, A simple modification in CMA-ES achieving linear time and
space complexity, PPSN 2008): the covariances of a network's weights would not fit into memory.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
MOST_FULL = 1000


class CmaEs:
    """Minimises a function of n numbers, which may be noisy, from the order of its values alone.

    Args:
        mean: (n,) where it begins.
        spread: standard deviation of the first candidates.
        population: candidates of a generation, 4 at least.
    """

    def __init__(self, mean: Vector, spread: float, population: int) -> None:
        n = len(mean)
        self._parents = population // 2
        raw = np.log((population + 1) / 2) - np.log(np.arange(1, self._parents + 1))
        self._weights = raw / raw.sum()
        mu = 1 / np.square(self._weights).sum()  # the effective number of parents
        self._mu, self._expected = mu, np.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n**2))  # length of N(0, I)
        self._path_rate = (mu + 2) / (n + mu + 5)
        self._damping = 1 + 2 * max(0.0, np.sqrt((mu - 1) / (n + 1)) - 1) + self._path_rate
        self._rank_one_path_rate = (4 + mu / n) / (n + 4 + 2 * mu / n)
        self._rank_one_rate = 2 / ((n + 1.3) ** 2 + mu)
        self._rank_mu_rate = min(1 - self._rank_one_rate, 2 * (mu - 2 + 1 / mu) / ((n + 2) ** 2 + mu))
        self._full = n <= MOST_FULL
        if not self._full:
            faster = (n + 2) / 3
            self._rank_one_rate *= faster
            self._rank_mu_rate = min(1 - self._rank_one_rate, faster * self._rank_mu_rate)
        self.mean, self.spread, self.generation = mean.copy(), spread, 0
        self._covariance = np.eye(n) if self._full else np.ones(n)
        self._path, self._rank_one_path = np.zeros(n), np.zeros(n)
        self._moves = np.zeros((population, n))
        self._look_at_axes()

    def ask(self, rng: np.random.Generator) -> Vector:
        """(population, n) candidates, whose values `tell` takes."""
        moves = rng.standard_normal(self._moves.shape) * self._root
        self._moves = moves @ self._axes.T if self._full else moves  # (38), (39)
        return self.mean + self.spread * self._moves

    def tell(self, values: Vector) -> None:
        """Learn from the (population,) values of the candidates that were asked for last."""
        best = self._moves[np.argsort(values, kind="stable")[: self._parents]]
        move = self._weights @ best  # (41)
        self.mean = self.mean + self.spread * move  # (42)
        self.generation += 1

        whitened = self._axes @ ((self._axes.T @ move) / self._root) if self._full else move / self._root
        keep = 1 - self._path_rate
        self._path = keep * self._path + np.sqrt((1 - keep**2) * self._mu) * whitened  # (43)
        length = float(np.linalg.norm(self._path))

        steady = length / np.sqrt(1 - keep ** (2 * self.generation))
        calm = steady < (1.4 + 2 / (len(move) + 1)) * self._expected
        keep = 1 - self._rank_one_path_rate
        self._rank_one_path = keep * self._rank_one_path + calm * np.sqrt((1 - keep**2) * self._mu) * move  # (45)
        lost = 0.0 if calm else 1 - keep**2
        path = self._rank_one_path
        self._covariance = (
            (1 - self._rank_one_rate * (1 - lost) - self._rank_mu_rate) * self._covariance
            + self._rank_one_rate * (np.outer(path, path) if self._full else path**2)
            + self._rank_mu_rate * ((best.T * self._weights) @ best if self._full else self._weights @ best**2)
        )  # (47)
        self.spread *= float(np.exp(self._path_rate / self._damping * (length / self._expected - 1)))  # (44)
        self._look_at_axes()

    def state(self) -> dict[str, NDArray]:
        """All from which `restore` goes on exactly as from here, between `tell` and `ask`."""
        return {
            "mean": self.mean.copy(),
            "covariance": self._covariance.copy(),
            "paths": np.stack([self._path, self._rank_one_path]),
            "numbers": np.array([self.spread, self.generation]),
        }

    def restore(self, state: Mapping[str, NDArray]) -> None:
        """Go on from a `state`."""
        self.mean, self._covariance = state["mean"].copy(), state["covariance"].copy()
        self._path, self._rank_one_path = state["paths"].copy()
        self.spread, self.generation = float(state["numbers"][0]), int(state["numbers"][1])
        self._look_at_axes()

    def _look_at_axes(self) -> None:
        """Lengths (n,) and directions (n, n), in columns, of the covariance's axes."""
        if not self._full:
            self._root = np.sqrt(np.maximum(self._covariance, 1e-20))
            return
        variances, self._axes = np.linalg.eigh((self._covariance + self._covariance.T) / 2)
        self._root = np.sqrt(np.maximum(variances, 1e-20))
