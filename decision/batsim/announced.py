"""The platform that SIMULATION_BEGINS announces, and what a Batsim 5 alone needs: a greeting, calls in milliseconds."""

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET
from msgspec.structs import replace

from decision import __version__
from decision.files.simgrid.values import WATTAGE, parse_sleep_states, parse_wattage
from decision.model.errors import ConfigError, RemoteProtocolError
from decision.model.platform import Host, Platform, PowerState
from decision.model.workload import POWER_SUPPLY
from decision.protocol import messages as m
from decision.protocol.messages import Resource
from decision.state.cluster import PSTATE_COMPUTING, ClusterState, PlatformFacts


def announced_platform(resources: Sequence[Resource]) -> Platform:
    """The compute hosts of SIMULATION_BEGINS. Speeds are nan where Batsim does not send them, which only Batsim 5 does.

    Raises:
        RemoteProtocolError: if there are none, or they are not numbered from 0.
    """
    if not resources:
        raise RemoteProtocolError("Batsim announces no compute host, and a simulation needs one")
    if [resource.id for resource in resources] != list(range(len(resources))):
        raise RemoteProtocolError("Batsim announces compute hosts whose ids do not count up from 0")
    hosts = []
    for resource in resources:
        properties = dict(resource.properties)
        wattage = next((properties[name] for name in WATTAGE if name in properties), None)
        speeds = (math.nan,) if resource.speeds is UNSET else resource.speeds
        # of the speed of a switch, which takes 1 / speed, Batsim prints too few digits: with 12 decimals the time of a
        # minute is known to a nanosecond only, and calls are rounded up. It is one of whole microseconds, as all of
        # Batsim 4's are
        speeds = tuple(1.0 / round(1.0 / speed, 6) if 0.0 < speed < 1.0 else speed for speed in speeds)
        watts = parse_wattage(wattage) if wattage else ((0.0, 0.0, 0.0),) * len(speeds)
        speeds = speeds if len(speeds) == len(watts) else (math.nan,) * len(watts)
        triplets = properties.get("sleep_pstates")
        host = Host(
            id=resource.id,
            name=resource.name,
            pstates=tuple(PowerState(speed, *three) for speed, three in zip(speeds, watts, strict=True)),
            initial_pstate=0 if resource.pstate is UNSET else resource.pstate,
            sleep=parse_sleep_states(triplets, len(watts)) if triplets and wattage else (),
            has_power=wattage is not None,
            properties=properties,
            zone_properties=dict(resource.zone_properties),
        )
        hosts.append(host)
    return Platform(hosts=tuple(hosts))


def in_announced_order(known: Platform, announced: Platform) -> Platform:
    """A known platform with its hosts in the order in which Batsim announces them, which is another in Batsim 5.

    Raises:
        ConfigError: if it is not the one that Batsim simulates.
    """
    names, others = ([host.name for host in platform.hosts] for platform in (known, announced))
    if names == others:
        return known
    if sorted(names) != sorted(others):
        raise ConfigError(
            f"{known.path or 'platform'}: {len(names)} hosts, from {names[0]}, but Batsim simulates {len(others)}, "
            f"from {others[0]}; give both the same platform"
        )
    order = [names.index(name) for name in others]
    hosts = tuple(replace(known.hosts[old], id=new) for new, old in enumerate(order))
    places = tuple((known.places or range(len(order)))[old] for old in order)
    routes = known.routes and (*(known.routes[old] for old in order), *known.routes[len(order) :])
    return replace(known, hosts=hosts, places=places, routes=routes)


# --- What only a Batsim 5 needs of a decision process ---

_MACHINE_EVENTS = ("machine_available", "machine_unavailable")


def hello(policy: str, suspends: bool) -> m.HelloData:
    """Our answer to Batsim's first message, which asks for no more than the policy needs."""
    wanted = m.Features(
        dynamic_registration=suspends,
        profile_reuse=suspends,
        acknowledge_dynamic_jobs=suspends,
        forward_profiles_on_job_submission=suspends,
    )
    return m.HelloData(name=f"decision ({policy})", version=__version__, features=wanted)


def milliseconds(time: float) -> float:
    """A time in seconds, rounded up to whole milliseconds."""
    return math.ceil(round(time * 1e9) / 1e6) / 1e3  # as `decision.engine.kernels.clock.whole_milliseconds`


def notification_of(event: m.ExternalEvent) -> m.Notify | None:
    """The notification that Batsim 4 would have sent for an external event; None for one that means nothing to us."""
    try:
        fields = msgspec.json.decode(event.data.text)
    except (msgspec.DecodeError, RecursionError):
        return None
    kind = fields.get("type") if isinstance(fields, dict) else None
    if kind in _MACHINE_EVENTS:
        return _notify(event, type=f"event_{kind}", resources=fields.get("resources", ""))
    return _notify(event, **fields) if kind == POWER_SUPPLY else None


def _notify(event: m.ExternalEvent, **fields: Any) -> m.Notify:
    return m.Notify(event.timestamp, m.NotifyData(**fields))


def switches(state: ClusterState, facts: PlatformFacts, hosts: list[int], pstate: int) -> list[tuple[list[int], bool]]:
    """The hosts that are to change to a pstate, in groups of one command each, with whether the change is at once.

    From one computing pstate to another it is; hosts that are there already are in no group.
    """
    others = np.array([host for host in hosts if state.pstate[host] != pstate], np.int64)
    computes = facts.pstate_kind[others, state.pstate[others]] == PSTATE_COMPUTING
    at_once = computes & (facts.pstate_kind[others, pstate] == PSTATE_COMPUTING)
    groups = ((others[at_once].tolist(), True), (others[~at_once].tolist(), False))
    return [group for group in groups if group[0]]
