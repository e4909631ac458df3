"""Policies around another one, which decides: a guard, an outlook (`estimated`), a supply of power (`supplied`)."""

from collections.abc import Iterator

from .policy import Policy
from .traits import Traits, traits_of


class AroundPolicy:
    """What is around another policy needs of jobs what that one needs, unless it says otherwise.

    Args:
        policy: any.
        name: for messages; by default that of `policy`.
    """

    def __init__(self, policy: Policy, name: str = "") -> None:
        self.policy, self.name = policy, name or traits_of(policy).name

    @property
    def traits(self) -> Traits:
        """Those of the policy in it, which it changes."""
        return traits_of(self.policy)._replace(name=self.name)


def layers(policy: Policy) -> Iterator[Policy]:
    """The policy and those in it, from the outermost to the one that decides."""
    yield policy
    while isinstance(policy, AroundPolicy):
        policy = policy.policy
        yield policy


def innermost(policy: Policy) -> Policy:
    """The policy that decides, without what is around it."""
    return list(layers(policy))[-1]
