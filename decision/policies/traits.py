"""What a policy needs of jobs, what it does besides starting them, and what it was learned with: one record.

A policy says it by attributes of the record's names, as many as differ from the defaults; what is around another
policy changes that one's record (`decision.policies.around`). All of it is known when a policy has been made, and
who wants to know asks `traits_of`.
"""

from typing import NamedTuple

from .outlook_settings import OutlookSettings
from .supply_settings import SupplySettings


class Traits(NamedTuple):
    """What never changes of a policy."""

    name: str  # for messages; by default that of its class
    needs_walltime: bool = False  # whether jobs must say their walltime
    needs_estimate: bool = False  # whether they must say how long they will run
    needs_users: bool = False  # whether nothing is predicted of jobs of nobody
    needs_value: bool = False  # whether jobs must have values
    needs_qos: bool = False  # whether they must have a quality of service
    switches_hosts: bool | None = None  # whether it puts hosts to sleep; None: it does not say
    suspends: bool = False  # whether it suspends jobs
    books_hosts: bool = False  # whether it gives jobs hosts that are not awake yet
    expects: OutlookSettings | None = None  # the predictions of run times that it was learned with
    supply: SupplySettings | None = None  # the supply of power that it was learned with


def traits_of(policy: object) -> Traits:
    """The record of a policy, whatever it is made of."""
    whole = getattr(policy, "traits", None)
    if isinstance(whole, Traits):
        return whole
    said = {field: getattr(policy, field) for field in Traits._fields if hasattr(policy, field)}
    return Traits(**({"name": type(policy).__name__} | said))
