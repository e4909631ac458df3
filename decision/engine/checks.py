"""What both engines refuse about a platform."""

from decision.model.errors import ConfigError
from decision.model.platform import Host, Platform

from .options import EngineOptions


def check_platform(platform: Platform, options: EngineOptions) -> None:
    """Refuse hosts that cannot be simulated.

    Raises:
        ConfigError: if a host has no speed, or no power where energy is simulated.
    """
    for host in (*platform.hosts, *platform.storage):
        _check_host(host, platform.path or "platform", options)


def _check_host(host: Host, path: str, options: EngineOptions) -> None:
    if options.energy and not host.has_power:
        reason = "does not say what it draws; add wattage_per_state or leave energy out"
        raise ConfigError(f"{path}: host {host.name!r} {reason}")
    used = range(len(host.pstates)) if options.energy else [host.initial_pstate]
    for pstate in used:
        if pstate not in host.sleep_pstates and host.pstates[pstate].speed <= 0:
            raise ConfigError(f"{path}: host {host.name!r} has no speed in pstate {pstate}; give it one above 0")
