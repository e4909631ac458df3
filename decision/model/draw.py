"""What hosts draw at most, and how many may compute within so many watts."""

from typing import NamedTuple

import numpy as np

from .errors import ConfigError
from .platform import Host, Platform, PowerState
from .record import Floats, Ints


class Draw(NamedTuple):
    """Watts of a platform by how many hosts compute, whichever they are: at most ``watts[k]`` where k do.

    A host that computes counts at full load; any other as idle, asleep or on its way, whichever draws most.
    """

    watts: Floats  # (H + 1,) ascending

    def hosts_within(self, watts: Floats) -> Ints:
        """How many hosts may compute within so many watts (n,); -1 where not even none may."""
        found: Ints = np.searchsorted(self.watts, watts * (1 + 1e-12), side="right") - 1
        return found


def draw_of(platform: Platform, sleeps: bool = True) -> Draw:
    """What a platform draws at most; storage hosts count at full load.

    Args:
        platform: the hosts.
        sleeps: whether hosts may sleep and change their pstates; else they stay in the one that they begin in.

    Raises:
        ConfigError: if a host does not say what it draws.
    """
    silent = next((host.name for host in platform.hosts if not host.has_power), None)
    if silent is not None:
        what = f"{platform.path}: does not say what host {silent} draws"
        raise ConfigError(f"{what}; give the platform's hosts a wattage_per_state", field="platform")
    rest = np.array([_resting(host, sleeps) for host in platform.hosts])
    more = (
        np.array([max(_computing(host, sleeps), low) for host, low in zip(platform.hosts, rest.tolist(), strict=True)])
        - rest
    )
    storage = sum(max(state.full, state.idle) for host in platform.storage for state in host.pstates[:1])
    return Draw(rest.sum() + storage + np.append(0.0, np.cumsum(np.sort(more)[::-1])))


def _computing(host: Host, sleeps: bool) -> float:
    """Watts at full load in the pstate that draws most."""
    return max(max(state.full, state.epsilon, state.idle) for state in _states(host, sleeps))


def _states(host: Host, sleeps: bool) -> list[PowerState]:
    """Pstates in which a host may compute."""
    if not sleeps:
        return [host.pstates[host.initial_pstate]]
    return [state for at, state in enumerate(host.pstates) if host.is_computing_pstate(at)]


def _resting(host: Host, sleeps: bool) -> float:
    """Watts without a job, whether it idles, sleeps or switches."""
    ways = [at for way in host.sleep for at in (way.pstate, way.switch_off, way.switch_on)] if sleeps else []
    return max(*(state.idle_watts for state in _states(host, sleeps)), *(host.pstates[at].full for at in ways), 0.0)
