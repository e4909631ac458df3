"""A platform as arrays."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from decision.compiling.bundle import F8, I1, I4, I8, Bundle, F8x2, I1x2, I4x2
from decision.model.platform import Host, Platform
from decision.placement.hops import network_codes

# Pstates of a host
PSTATE_NONE, PSTATE_COMPUTING, PSTATE_SLEEP, PSTATE_VIRTUAL = -1, 0, 1, 2


class PlatformFacts(Bundle):
    """What is known of the hosts and never changes. H hosts, P pstates at most."""

    speed: F8x2  # (H, P) flop/s; nan where unknown (Batsim does not send speeds)
    idle: F8x2  # (H, P) watts without load
    epsilon: F8x2  # (H, P) watts at the least load
    full: F8x2  # (H, P) watts at full load
    pstate_kind: I1x2  # (H, P) PSTATE_*
    switch_off: I4x2  # (H, P) virtual pstate of falling asleep into this sleep pstate, -1 elsewhere
    switch_on: I4x2  # (H, P) virtual pstate of waking from this sleep pstate, -1 elsewhere
    sleep_pstate: I4  # (H,) the host's first sleep pstate, -1 where it cannot sleep
    off_time: F8  # (H,) seconds to fall asleep into sleep_pstate; nan where unknown
    on_time: F8  # (H,) seconds to wake from sleep_pstate; nan where unknown
    # servers: hosts that are one machine, and are switched together; S of them, by their lowest host
    server: I4  # (H,) number of the host's server
    server_begin: I4  # (S + 1,) where each server's hosts begin in server_host
    server_host: I4  # (H,) hosts by server, ascending in each
    server_name: I1  # names in UTF-8, each ended by a 0; none of hosts that are servers of their own
    # the tree of switches that connects the hosts; empty where what connects them is none, or is unknown
    down: I8  # (L,) devices below each switch of a level, from the hosts up
    switch: I4  # (H,) each host's lowest switch, numbered from left to right
    # any network that is known
    network: I8  # its kind and sizes (decision.placement.hops); empty where it is unknown
    place: I4  # (H,) each host's place in it


def platform_facts(platform: Platform, energy: bool) -> tuple[PlatformFacts, I4]:
    """The compute hosts' facts as arrays, and their initial pstates (H,).

    Without `energy` no host sleeps, whatever its pstates: Batsim reads `sleep_pstates` with energy only.
    """
    hosts = platform.hosts
    shape = (len(hosts), max(len(h.pstates) for h in hosts))
    facts = PlatformFacts(
        speed=np.full(shape, np.nan),
        idle=np.zeros(shape),
        epsilon=np.zeros(shape),
        full=np.zeros(shape),
        pstate_kind=np.full(shape, PSTATE_NONE, np.int8),
        switch_off=np.full(shape, -1, np.int32),
        switch_on=np.full(shape, -1, np.int32),
        sleep_pstate=np.full(len(hosts), -1, np.int32),
        off_time=np.full(len(hosts), np.nan),
        on_time=np.full(len(hosts), np.nan),
        **_servers(platform.servers),
        down=np.array(platform.down, np.int64),
        switch=platform.switch_of().astype(np.int32) if platform.down else np.zeros(0, np.int32),
        network=network_codes(platform.topology),
        place=np.array(platform.places or range(len(hosts)), np.int32),
    )
    alike: dict[Any, list[int]] = {}
    for i, host in enumerate(hosts):
        alike.setdefault((host.pstates, host.sleep), []).append(i)
    for rows in alike.values():
        first = hosts[rows[0]]
        _fill_pstates(facts, rows, first)
        if energy:
            _fill_sleep(facts, rows, first)
    return facts, np.array([h.initial_pstate for h in hosts], np.int32)


def _servers(names: tuple[str, ...]) -> dict[str, NDArray]:
    """The servers of hosts, given the name of each host's server by id."""
    number: dict[str | int, int] = {}
    server = np.array([number.setdefault(name or host, len(number)) for host, name in enumerate(names)], np.int32)
    begin = np.concatenate(([0], np.cumsum(np.bincount(server))))
    text = "".join(f"{name if isinstance(name, str) else ''}\0" for name in number).encode(errors="replace")
    return {
        "server": server,
        "server_begin": begin.astype(np.int32),
        "server_host": np.argsort(server, kind="stable").astype(np.int32),
        "server_name": np.frombuffer(text, np.int8).copy(),
    }


def server_name(facts: PlatformFacts, server: int) -> str:
    """The name of the server of this number; empty where it is a host of its own."""
    return facts.server_name.tobytes().split(b"\0")[server].decode()


def _fill_pstates(facts: PlatformFacts, rows: list[int], host: Host) -> None:
    """Fill the rows of hosts that are all like `host`."""
    for p, power in enumerate(host.pstates):
        facts.speed[rows, p] = power.speed
        facts.idle[rows, p] = power.idle
        facts.epsilon[rows, p] = power.epsilon
        facts.full[rows, p] = power.full
        facts.pstate_kind[rows, p] = PSTATE_COMPUTING


def _fill_sleep(facts: PlatformFacts, rows: list[int], host: Host) -> None:
    for sleep in host.sleep:
        facts.pstate_kind[rows, sleep.pstate] = PSTATE_SLEEP
        facts.pstate_kind[rows, sleep.switch_off] = PSTATE_VIRTUAL
        facts.pstate_kind[rows, sleep.switch_on] = PSTATE_VIRTUAL
        facts.switch_off[rows, sleep.pstate] = sleep.switch_off
        facts.switch_on[rows, sleep.pstate] = sleep.switch_on
    if host.sleep:
        first = host.sleep[0]
        facts.sleep_pstate[rows] = first.pstate
        facts.off_time[rows] = 1.0 / facts.speed[rows, first.switch_off]
        facts.on_time[rows] = 1.0 / facts.speed[rows, first.switch_on]
