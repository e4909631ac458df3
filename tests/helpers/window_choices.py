"""A learned policy for windows whose network is a hash, for runs in which policies have names."""

from decision.rl.schedulers import ChoosingPolicy
from decision.rl.schedulers.repair import RepairEncoder
from helpers.env_toys import scrambled


class HashedStarts:
    """Starts of the jobs of a window, on a tree of three levels, by a hash of what a network would see."""

    needs_walltime = False

    def __init__(self) -> None:
        encoder = RepairEncoder(q=14, levels=3, period=10.0, jobs=2)
        self._policy = ChoosingPolicy(encoder, lambda seen, mask: int(scrambled(seen, mask)[0]))

    def reset(self, platform, seed) -> None:
        """A run begins."""
        self._policy.reset(platform, seed)

    def decide(self, cluster, plan) -> None:
        """Choose."""
        self._policy.decide(cluster, plan)
