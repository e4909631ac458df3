"""The least waste that any shutdown of servers allows with the same starts."""

import math
from typing import NamedTuple

import numpy as np

from decision.model.platform import Platform
from decision.model.record import Floats, Ints, RunRecord

from .energy import HostUses, all_off, busy_periods, host_uses, server_numbers
from .metrics import only_ran


def waste_bound(record: RunRecord, platform: Platform, begin: float | None = None) -> float:
    """Joules: the least waste that any shutdown of servers allows with the same starts, all being known before.

    ``sum over gaps of min(idle * gap, off + on)``: while none of its hosts has a job a server idles, or it falls asleep
    and wakes again, where the gap is long enough for both. Before its first job it may fall asleep as soon as the run
    begins; after its last it need not wake. Time is counted, and what never sleeps is idle, as in `split_energy`.

    Args:
        record: the run; nan where energy was not simulated.
        platform: its hosts, with what they draw and how long they take to switch.
        begin: when to begin to count, as of `split_energy`.
    """
    jobs = only_ran(record.jobs)
    if record.pstates is None or not jobs.id:
        return math.nan
    first = float(record.jobs.submit_time.min()) if begin is None else begin
    last = float((jobs.start_time + jobs.runtime).max())
    drained = (any(platform.servers) or begin is not None) and all_off(record.pstates, platform) > 0.0
    server = server_numbers(platform)
    owner, start, end = busy_periods(_uses_of_hosts(host_uses(jobs), len(server)), server)
    kinds = _ServerKinds.of(platform, server)
    born = float(record.pstates.time.min())
    free_from = np.full(len(kinds.idle), born)
    np.maximum.at(free_from, owner, end)
    before = np.where(np.append(-1, owner[:-1])[: len(owner)] == owner, np.roll(end, 1), born)
    waste = kinds.least(owner, before, start, first).sum()
    if drained:
        last = max(last, float((free_from + kinds.off).max()))
        waste += kinds.falling(free_from, np.full(len(free_from), np.inf), first).sum()
    else:
        idle = kinds.idle * np.maximum(last - np.maximum(free_from, first), 0.0)
        waste += np.minimum(idle, kinds.falling(free_from, np.full(len(free_from), last), first)).sum()
    storage = sum(host.pstates[host.initial_pstate].idle for host in platform.storage)
    return float(waste + storage * (last - first))


def _uses_of_hosts(uses: HostUses, hosts: int) -> HostUses:
    """Those of compute hosts."""
    kept = uses.host < hosts
    return HostUses(uses.host[kept], uses.start[kept], uses.runtime[kept])


class _ServerKinds(NamedTuple):
    """What each of S servers draws, and how long it takes to switch; inf where a host of it never sleeps. (S,)"""

    idle: Floats  # watts
    off: Floats  # seconds to fall asleep
    on: Floats  # seconds to wake
    off_watts: Floats
    on_watts: Floats

    @classmethod
    def of(cls, platform: Platform, server: Ints) -> "_ServerKinds":
        """Hosts with the numbers (H,) of their servers."""
        kinds = cls(*(np.zeros(int(server.max()) + 1) for _ in cls._fields))
        for at, host in zip(server.tolist(), platform.hosts, strict=True):
            kinds.idle[at] += host.pstates[host.initial_pstate].idle
            if not host.sleep:
                kinds.off[at] = math.inf
                continue
            off, on = (host.pstates[way] for way in (host.sleep[0].switch_off, host.sleep[0].switch_on))
            kinds.off[at], kinds.on[at] = max(kinds.off[at], 1.0 / off.speed), max(kinds.on[at], 1.0 / on.speed)
            kinds.off_watts[at] += off.full
            kinds.on_watts[at] += on.full
        return kinds

    def least(self, server: Ints, begin: Floats, end: Floats, first: float) -> Floats:
        """(n,) joules of gaps between two uses, counted from `first` (seconds) on."""
        counted = np.maximum(end - np.maximum(begin, first), 0.0)
        idle, on = self.idle[server] * counted, self.on[server]
        chosen = _ServerKinds(*(column[server] for column in self))
        asleep = chosen.falling(begin, end, first) + chosen.on_watts * np.minimum(on, counted)
        return np.where(end - begin >= chosen.off + on, np.minimum(idle, asleep), idle)

    def falling(self, begin: Floats, end: Floats, first: float) -> Floats:
        """(S,) joules of falling asleep from `begin` on, counted from `first` to `end`; inf where one never sleeps."""
        over = np.where(np.isfinite(self.off), begin + self.off, np.inf)
        counted = np.maximum(np.minimum(over, end) - np.maximum(begin, first), 0.0)
        return np.where(np.isfinite(self.off), self.off_watts * counted, np.inf)
