"""Platforms: hosts, their power states, and how they sleep and wake."""

from collections.abc import Mapping

import msgspec


class PowerState(msgspec.Struct, frozen=True):
    """One pstate of a host: its speed and what it draws at three loads (SimGrid's host energy model).

    A host draws `idle` without load, and ``epsilon + load * (full - epsilon)`` at a load in (0, 1].
    """

    speed: float  # flop/s
    idle: float = 0.0  # watts
    epsilon: float = 0.0  # watts
    full: float = 0.0  # watts


class SleepState(msgspec.Struct, frozen=True):
    """A pstate in which a host sleeps, and the virtual pstates that model its way in and out.

    A switch computes one flop in the virtual pstate: it takes ``1 / speed`` seconds at `full` watts.
    """

    pstate: int
    switch_off: int  # virtual pstate of falling asleep
    switch_on: int  # virtual pstate of waking up


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """One host. `id` is Batsim's: compute hosts first, by name in byte order, then storage hosts."""

    id: int
    name: str
    pstates: tuple[PowerState, ...]
    sleep: tuple[SleepState, ...] = ()
    initial_pstate: int = 0
    has_power: bool = False  # whether the platform says what the host draws
    properties: Mapping[str, str] = {}
    zone_properties: Mapping[str, str] = {}

    @property
    def virtual_pstates(self) -> frozenset[int]:
        """Pstates that only model a switch."""
        return frozenset(p for s in self.sleep for p in (s.switch_off, s.switch_on))

    @property
    def sleep_pstates(self) -> frozenset[int]:
        """Pstates in which the host sleeps."""
        return frozenset(s.pstate for s in self.sleep)

    def is_computing_pstate(self, pstate: int) -> bool:
        """Whether the host can run jobs in this pstate."""
        known = 0 <= pstate < len(self.pstates)
        return known and pstate not in self.sleep_pstates and pstate not in self.virtual_pstates


class Platform(msgspec.Struct, frozen=True, kw_only=True):
    """The hosts that jobs run on, the storage hosts, and the name of the host that Batsim itself runs on."""

    hosts: tuple[Host, ...]  # compute hosts; hosts[i].id == i
    storage: tuple[Host, ...] = ()  # storage hosts; their ids follow
    master: str = "master_host"
    path: str = ""  # the file it came from

    @property
    def has_power(self) -> bool:
        """Whether every compute host says what it draws."""
        return all(h.has_power for h in self.hosts)
