"""Clusters of equal hosts, with the power states of a measured Grid'5000 server or simpler ones."""

from textwrap import fill
from typing import NamedTuple

import msgspec

from decision.model.errors import ConfigError
from decision.model.platform import MAX_HOSTS, Host, Platform, PowerState, SleepState
from decision.model.topology import Flat, Link, Topology

from .grid5000 import CLUSTERS, ETHERNET_LATENCY, Grid5000Cluster

_TAURUS = CLUSTERS["taurus"]
TAURUS_SPEED = _TAURUS.cores * _TAURUS.core_speed("measured")  # flop/s: a host of 12 cores, seen as one resource

# Taurus (Grid'5000 Lyon, Dell R720, 2 x Xeon E5-2630): watts of a computing server at each frequency with its speed
# relative to the first, the idle power, and what falling asleep and waking up take: the measurements published
# with Batsim's energy platforms.
_TAURUS_FREQUENCIES = (
    (1.0000, 190.738),
    (0.8896, 171.02),
    (0.8368, 165.62),
    (0.8057, 160.47),
    (0.7622, 155.729),
    (0.7249, 151.3),
    (0.6878, 146.92),
    (0.6468, 142.95),
    (0.6078, 138.928),
    (0.5863, 135.368),
    (0.5009, 132.519),
    (0.4921, 128.87),
    (0.4498, 125.88),
)
_IDLE_WATTS = 95.0
_SLEEP_WATTS = 9.75
_OFF_SECONDS, _OFF_WATTS = 6.1, 100.997
_ON_SECONDS, _ON_WATTS = 151.52, 125.174
_SLEEP_SPEED = 1e-3  # flop/s; nothing is computed asleep, but SimGrid wants a speed


class SwitchTimes(NamedTuple):
    """How long a server takes to switch."""

    wake: float  # seconds
    sleep: float  # seconds


_MEASURED = SwitchTimes(wake=_ON_SECONDS, sleep=_OFF_SECONDS)


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster of Grid'5000, and what is wanted of it."""

    cluster: Grid5000Cluster
    flops: str = "measured"  # which speed a core has; or "theoretical"
    servers: int | None = None  # without regard to how many there were; all that there were if absent
    by_core: bool = False  # one host per core, not per server
    power: bool = False  # with the power and sleep states of a server of taurus, the only one measured in all of them
    network: bool = False  # with links
    switch_times: SwitchTimes | None = None  # in place of those of taurus

    @property
    def nb_servers(self) -> int:
        """How many servers there will be."""
        return self.servers or self.cluster.nodes


def grid5000_cluster(wanted: Wanted) -> Platform:
    """Servers like those of a cluster of Grid'5000.

    By core, each host has the property `server` that names its server, and draws its share of the server's watts: the
    sum is the server's when all its cores do the same. They are one machine: a policy that switches one of them
    should switch all of them at once.

    Raises:
        ConfigError: if the speed was not measured, or there are more hosts than `MAX_HOSTS`.
    """
    cores = wanted.cluster.cores
    share = cores if wanted.by_core else 1  # hosts that a server is made of
    check_number(wanted.nb_servers * share)
    speed = wanted.cluster.core_speed(wanted.flops) * cores / share
    times = wanted.switch_times or _MEASURED
    pstates, sleep, off = taurus_power(speed, share, times) if wanted.power else ((PowerState(speed),), (), {})
    hosts = [
        (name, {**off, **properties})
        for number in range(1, wanted.nb_servers + 1)
        for name, properties in _hosts_of(f"{wanted.cluster.name}-{number}", cores if wanted.by_core else 0)
    ]
    topology = Flat(len(hosts), Link(wanted.cluster.ethernet / 8, ETHERNET_LATENCY)) if wanted.network else None
    return uniform_platform(hosts, pstates, sleep, topology)


def describe_cluster(wanted: Wanted) -> str:
    """What `grid5000_cluster` makes, with the source of every figure: several lines."""
    cluster, number = wanted.cluster, wanted.nb_servers
    there_were = "" if number == cluster.nodes else f" (there were {cluster.nodes})"
    host = "core" if wanted.by_core else "server"
    lines = [
        f"{cluster.name} (Grid'5000, {cluster.site}, {cluster.year}): {number} servers{there_were} of {cluster.cores} "
        f"cores ({cluster.cpus} x {cluster.cpu}), {cluster.network}; one host per {host}.",
        f"Speed: {cluster.core_speed(wanted.flops) / 1e9:g} Gflop/s per core ({cluster.speed_source(wanted.flops)}).",
    ]
    if cluster.note:
        lines.append(f"Note: {cluster.note}.")
    if wanted.by_core:
        lines.append("The property 'server' groups the cores of a server: they are one machine and switch together.")
    if wanted.power:
        lines += _power_description(cluster, wanted.by_core, wanted.switch_times)
    lines.append(_network_description(cluster) if wanted.network else "No network: messages take no time.")
    return "\n".join(fill(line, 110) for line in lines)


def _power_description(cluster: Grid5000Cluster, by_core: bool, chosen: SwitchTimes | None) -> list[str]:
    own, times = "as measured and published with Batsim's energy platforms", chosen or _MEASURED
    borrowed = f"those of a server of taurus, {own}; none of {cluster.name} are known"
    lines = [
        f"Power at 13 frequencies, asleep, and while switching: {own if cluster is _TAURUS else borrowed}.",
        f"A pstate's power is idle : epsilon : computing. Pstate 13 sleeps; 14 (off, {times.sleep:g} s) and 15 (on, "
        f"{times.wake:g} s) only model the switches.",
    ]
    if chosen:
        lines.append(f"How long switches take was chosen; measured are {_OFF_SECONDS:g} s (off) and {_ON_SECONDS:g} s.")
    if by_core:
        lines.append(f"A core draws 1/{cluster.cores} of what its server draws.")
    return lines


def _network_description(cluster: Grid5000Cluster) -> str:
    return (
        f"Network: a link of {cluster.ethernet / 1e9:g} Gbit/s each way from each server to one switch that never "
        "saturates; the latency is that of SimGrid's description of Grid'5000 (g5k.xml)."
    )


def _hosts_of(server: str, cores: int) -> list[tuple[str, dict[str, str]]]:
    """Names and properties of a server's hosts: itself, or its cores with names that sort in their order."""
    if cores == 0:
        return [(server, {})]
    return [(f"{server}-core-{core:02d}", {"server": server}) for core in range(cores)]


def taurus_power(
    speed: float, share: int, times: SwitchTimes = _MEASURED
) -> tuple[tuple[PowerState, ...], tuple[SleepState, ...], dict[str, str]]:
    """Pstates, sleep states and further properties of a host that is one of `share` equal parts of a server."""

    def watts(of_server: float) -> float:
        return of_server if share == 1 else round(of_server / share, 6)

    idle, asleep = watts(_IDLE_WATTS), watts(_SLEEP_WATTS)
    computing = [
        PowerState(speed if relative == 1 else round(speed * relative, -7), idle, idle, watts(full))
        for relative, full in _TAURUS_FREQUENCIES
    ]
    sleep = len(computing)
    pstates = (
        *computing,
        _constant(_SLEEP_SPEED, asleep),
        _constant(1 / times.sleep, watts(_OFF_WATTS)),
        _constant(1 / times.wake, watts(_ON_WATTS)),
    )
    return pstates, (SleepState(sleep, sleep + 1, sleep + 2),), {"wattage_off": f"{asleep}"}


def simple_cluster(nb_hosts: int) -> Platform:
    """Hosts with one pstate, taurus at full speed, that draw 95 W idle and 190.738 W computing, and never sleep."""
    state = PowerState(TAURUS_SPEED, _IDLE_WATTS, _IDLE_WATTS, _TAURUS_FREQUENCIES[0][1])
    return uniform_platform([(f"node-{number:03d}", {}) for number in range(nb_hosts)], (state,))


def check_number(nb_hosts: int) -> None:
    """Refuse more hosts than `MAX_HOSTS`. Raises ConfigError."""
    if nb_hosts > MAX_HOSTS:
        raise ConfigError(f"{nb_hosts:,} hosts are more than the {MAX_HOSTS:,} that a platform may have")


def _constant(speed: float, watts: float) -> PowerState:
    return PowerState(speed, watts, watts, watts)


def uniform_platform(
    hosts: list[tuple[str, dict[str, str]]],
    pstates: tuple[PowerState, ...],
    sleep: tuple[SleepState, ...] = (),
    topology: Topology | None = None,
) -> Platform:
    """Equal hosts in Batsim's order of ids, from their names and properties."""
    has_power = any(state.full for state in pstates)
    ordered = sorted(hosts, key=lambda host: host[0].encode())
    return Platform(
        hosts=tuple(
            Host(id=number, name=name, pstates=pstates, sleep=sleep, has_power=has_power, properties=properties)
            for number, (name, properties) in enumerate(ordered)
        ),
        topology=topology,
    )
