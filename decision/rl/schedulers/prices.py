"""Prices: what free hosts of a tree of switches are worth to jobs that come later, learned by evolution.

The best hosts for one job may be those that the next ones need: hosts of a switch that was idle, or next to jobs that
will end together. `decision.policies.placement.windows` adds to a job's hops what its hosts would be worth to others,
and says of what features prices are sums; their weights are learned here. What is minimised is what whole schedules
cost, in the embedded engine: mean hops of a job, or, for jobs that communicate, the mean of their run times over those
that they would have alone.
"""

from typing import Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from decision.model.errors import ConfigError, InputError
from decision.model.platform import Platform
from decision.model.workload import Workload
from decision.policies.allocation import check_tree
from decision.policies.composed import ComposedPolicy
from decision.policies.options import split_name
from decision.policies.placement.windows import FEATURES, LARGEST_WEIGHT, N_FEATURES

from .base import Episodes, Scheduler, register
from .window import Count


class PricesSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The schedules that prices are judged by."""

    jobs: Count = 500  # of a sequence; no others come
    metric: Literal["hops", "stretch"] = "hops"  # the mean of which is minimised
    policy: Annotated[str, msgspec.Meta(max_length=40)] = "fcfs"  # order and backfilling


class Prices(Scheduler):
    """Weights of the prices of free hosts."""

    name = "prices"
    summary = "what free hosts of a fat-tree are worth to later jobs, for allocation=tree,prices=FILE.ckpt"
    Settings = PricesSettings
    presets = ("prices",)
    algorithms = ("cma-es",)
    curves = ("hops", "stretch", "waiting_time")
    sees: ClassVar[dict[str, str | int]] = {"name": "prices", "version": 1}  # raised when a weight changes its meaning

    def check(self, settings: PricesSettings, where: str) -> None:
        """Refuse what is not an order and a way of backfilling. Raises ConfigError."""
        if split_name(settings.policy) is None:
            raise ConfigError(
                f"{where}env.policy: must be an order and a backfilling, like easy; found {settings.policy}"
            )

    def episodes(self, settings: PricesSettings, workload: Workload) -> Episodes:
        """Sequences of jobs after which none come."""
        return Episodes(jobs=min(settings.jobs, len(workload.jobs)), online=False)

    def first_weights(self, platform: Platform) -> NDArray[np.float64]:
        """Free hosts are worth nothing: (L - 1, N_FEATURES) of a tree of L levels.

        Raises:
            ConfigError: if no such tree connects the hosts of the platform.
        """
        check_tree("training prices", platform)
        if len(platform.down) < 2:
            given = f"{platform.path or 'the platform'} has one switch"
            raise ConfigError(f"training prices needs a tree of switches, and {given}", field="platform")
        return np.zeros((len(platform.down) - 1, N_FEATURES))

    def policy(self, weights: NDArray[np.float64], settings: PricesSettings) -> ComposedPolicy:
        """The policy that is judged."""
        # what prices change is where jobs run; order and backfilling are fixed
        order, backfill = split_name(settings.policy) or ("fcfs", "none")
        return ComposedPolicy(order, backfill, allocation="tree", prices=self.bounded(weights))

    def bounded(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """The weights, as far as they may go."""
        return np.clip(weights, -LARGEST_WEIGHT, LARGEST_WEIGHT)


def as_prices(where: str, sees: dict[str, Any], numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """The numbers of a checkpoint as weights (L - 1, N_FEATURES).

    Args:
        where: for messages.
        sees: what the checkpoint says that its numbers mean.
        numbers: all of them.

    Raises:
        ConfigError: if they mean something else than here.
        InputError: if they cannot be weights.
    """
    if sees != Prices.sees:
        raise ConfigError(f"{where}: its prices are of version {sees.get('version')}, ours of 1; train again")
    if len(numbers) == 0 or len(numbers) % N_FEATURES or abs(numbers).max() > LARGEST_WEIGHT:
        rest = f"{N_FEATURES} for each level ({', '.join(FEATURES)}), from -{LARGEST_WEIGHT:g} to {LARGEST_WEIGHT:g}"
        raise InputError(
            f"{where}: {len(numbers)} numbers are no weights of prices: there are {rest}; copy the file again"
        )
    return numbers.reshape(-1, N_FEATURES)


register(Prices())
