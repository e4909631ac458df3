"""Policies around another one, which decides: a guard, an outlook (`estimated`), a supply of power (`supplied`)."""

from collections.abc import Iterator

from .policy import Policy


class AroundPolicy:
    """What is around another policy needs of jobs what that one needs.

    Args:
        policy: any.
        name: for messages; by default that of `policy`.
    """

    def __init__(self, policy: Policy, name: str = "") -> None:
        self.policy, self.name = policy, name or getattr(policy, "name", type(policy).__name__)

    @property
    def needs_walltime(self) -> bool:
        """Whether jobs must say their walltime."""
        return bool(getattr(self.policy, "needs_walltime", False))

    @property
    def needs_estimate(self) -> bool:
        """Whether jobs must say how long they will run."""
        return bool(getattr(self.policy, "needs_estimate", False))

    @property
    def needs_users(self) -> bool:
        """Whether nothing is predicted of jobs of nobody."""
        return bool(getattr(self.policy, "needs_users", False))

    @property
    def switches_hosts(self) -> bool:
        """Whether it puts hosts to sleep."""
        return bool(getattr(self.policy, "switches_hosts", False))


def layers(policy: Policy) -> Iterator[Policy]:
    """The policy and those in it, from the outermost to the one that decides."""
    yield policy
    while isinstance(policy, AroundPolicy):
        policy = policy.policy
        yield policy


def innermost(policy: Policy) -> Policy:
    """The policy that decides, without what is around it."""
    return list(layers(policy))[-1]
