"""What hosts draw at most, and how many may compute within so many watts."""

from typing import NamedTuple

import numpy as np

from .errors import ConfigError
from .platform import Host, Platform
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


def draw_of(platform: Platform) -> Draw:
    """What a platform draws at most; storage hosts count at full load.

    Raises:
        ConfigError: if a host does not say what it draws.
    """
    silent = next((host.name for host in platform.hosts if not host.has_power), None)
    if silent is not None:
        what = f"{platform.path}: does not say what host {silent} draws"
        raise ConfigError(f"{what}; give the platform's hosts a wattage_per_state", field="platform")
    rest = np.array([_resting(host) for host in platform.hosts])
    more = (
        np.array([max(_computing(host), low) for host, low in zip(platform.hosts, rest.tolist(), strict=True)]) - rest
    )
    storage = sum(max(state.full, state.idle) for host in platform.storage for state in host.pstates[:1])
    return Draw(rest.sum() + storage + np.append(0.0, np.cumsum(np.sort(more)[::-1])))


def _computing(host: Host) -> float:
    """Watts at full load in the pstate that draws most."""
    states = [state for at, state in enumerate(host.pstates) if host.is_computing_pstate(at)]
    return max(max(state.full, state.epsilon, state.idle) for state in states)


def _resting(host: Host) -> float:
    """Watts without a job, whether it idles, sleeps or switches."""
    idle = [state.idle_watts for at, state in enumerate(host.pstates) if host.is_computing_pstate(at)]
    return max(
        [*idle, *(host.pstates[at].full for way in host.sleep for at in (way.pstate, way.switch_off, way.switch_on))]
    )
