"""What Batsim tells of its hosts, as a `Platform`: names, power and sleep states, but no speeds."""

import math
from collections.abc import Sequence

from decision.formats.power import WATTAGE, parse_sleep_states, parse_wattage
from decision.model.errors import ConfigError
from decision.model.platform import Host, Platform, PowerState
from decision.protocol import Resource


def told_platform(resources: Sequence[Resource]) -> Platform:
    """The compute hosts of SIMULATION_BEGINS. Speeds are nan: Batsim does not send them."""
    return Platform(hosts=tuple(_host(resource) for resource in resources))


def check_same(known: Platform, told: Platform) -> None:
    """Refuse a platform that is not the one that Batsim simulates.

    Raises:
        ConfigError: naming both.
    """
    names, others = ([host.name for host in platform.hosts] for platform in (known, told))
    if names != others:
        raise ConfigError(
            f"{known.path or 'platform'}: {len(names)} hosts, from {names[0]}, but Batsim simulates {len(others)}, "
            f"from {others[0]}; give both the same platform"
        )


def _host(resource: Resource) -> Host:
    properties = dict(resource.properties)
    wattage = next((properties[name] for name in WATTAGE if name in properties), None)
    watts = parse_wattage(wattage) if wattage else ((0.0, 0.0, 0.0),)
    triplets = properties.get("sleep_pstates")
    return Host(
        id=resource.id,
        name=resource.name,
        pstates=tuple(PowerState(math.nan, *three) for three in watts),
        sleep=parse_sleep_states(triplets, len(watts)) if triplets and wattage else (),
        has_power=wattage is not None,
        properties=properties,
        zone_properties=dict(resource.zone_properties),
    )
