"""A cap on power, for any policy: so many hosts may compute as stay below it, whichever they are.

A cap is a supply of power that a policy knows of: hosts beyond it are as good as away, and jobs that run beyond it
where it falls are suspended. What hosts draw is bounded (`decision.model.draw`), so the cap is kept whatever a policy
does.
"""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from decision.formats.series import SeriesLayout, read_series
from decision.model.demand import supply_table
from decision.model.draw import draw_of
from decision.model.errors import ConfigError
from decision.model.platform import Platform
from decision.model.record import Floats, Ints
from decision.model.workload import POWER_SUPPLY, MachineEvent

CAP = "cap"  # name of the option, for every policy
_COLUMNS = ("cap", "watts", "power")


class HostCap(NamedTuple):
    """How many hosts may compute from each time on. Columns of length n."""

    time: Floats  # seconds, ascending; the first is 0
    hosts: Ints


def read_cap(policy: str, cap: str, platform: Platform, sleeps: bool) -> HostCap:
    """How many hosts may compute under a cap.

    Args:
        policy: for messages.
        cap: watts, or a file with watts by time (`decision.formats.series`); the last of them hold on.
        platform: whose hosts say what they draw.
        sleeps: whether the policy may change what hosts without a job do.

    Raises:
        ConfigError: if it is neither, or lower than what the hosts draw without a job.
    """
    try:
        watts = float(cap)
        time, level = np.zeros(1), np.array([watts])
    except ValueError:
        if not Path(cap).is_file():
            raise ConfigError(f"policy {policy}: option {CAP}={cap} must be watts, or a file of them by time") from None
        time, level, _ = read_series(Path(cap), SeriesLayout(), _COLUMNS)
    draw = draw_of(platform, sleeps)
    hosts = draw.hosts_within(level)
    low = np.flatnonzero((hosts < 0) | ~(level < math.inf))
    if len(low):
        least = f"the {draw.watts[0]:.12g} W that the hosts of {platform.path} draw without a job"
        what = f"{level[low[0]]:.12g} W is not above {least}"
        raise ConfigError(f"policy {policy}: option {CAP}={cap}: {what}; give more")
    return HostCap(time, hosts)


def capped_events(cap: HostCap, events: Sequence[MachineEvent]) -> list[MachineEvent]:
    """The events with a supply of power that the cap limits, or that is the cap where there is none."""
    others = [event for event in events if event.type != POWER_SUPPLY]
    supply = {event.timestamp: event for event in events if event.type == POWER_SUPPLY}
    table = supply_table(events)
    times = cap.time if table is None else np.union1d(cap.time, table.time)
    allowed = cap.hosts[np.searchsorted(cap.time, times, side="right") - 1]
    if table is not None:
        at = np.searchsorted(table.time, times, side="right") - 1
        powered = np.where(at >= 0, table.hosts[np.maximum(at, 0)], np.inf)
        allowed = np.minimum(allowed, powered).astype(np.int64)
    made = []
    for time, hosts in zip(times.tolist(), allowed.tolist(), strict=True):
        expected = [min(hosts, there) for there in supply[time].hosts[1:]] if time in supply else []
        said = {"type": POWER_SUPPLY, "timestamp": time, "hosts": hosts, "forecast": expected}
        source = json.dumps(said).encode()
        made.append(MachineEvent(timestamp=time, type=POWER_SUPPLY, hosts=(hosts, *expected), source=source))
    return sorted([*others, *made], key=lambda event: event.timestamp)
