"""Where a run's energy went: into jobs, idle hosts, switches and sleep.

Batsim says what the whole platform consumed and what each job's hosts consumed while it ran. The rest is worked out
from the pstates that each host was in and what the platform says a host draws in them. Hosts run one job at a time.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from decision.model.hosts import parse_hosts
from decision.model.platform import Host, Platform, SleepState
from decision.model.record import Floats, HostState, Ints, JobTable, PstateTable, RateTable, RunRecord

from .metrics import only_ran

_SWITCHING_ON, _SWITCHING_OFF = -1, -2  # in a PstateTable


class EnergySplit(msgspec.Struct, frozen=True, kw_only=True):
    """Joules by what hosts did, between the first submission and the last end of a job, as Batsim counts energy.

    Hosts with the same property ``server`` are one machine, which computes while one of its hosts does, and time is
    counted until the last of them is off, where all are in the end.
    """

    total: float  # as the run says; with servers the sum of the others
    computing: float  # hosts of jobs, while they ran, and the others of their server; nan where jobs shared servers
    idle: float  # hosts of servers that could compute and had no job, storage hosts and unavailable hosts
    switching: float  # hosts that fell asleep or woke up
    sleeping: float

    @property
    def waste(self) -> float:
        """``idle + switching``: energy that served nobody."""
        return self.idle + self.switching


class _Stays(NamedTuple):
    """Hosts in one pstate each for a while. Columns of length n."""

    host: Ints
    begin: Floats  # seconds
    end: Floats  # seconds
    watts: Floats  # without a job
    state: Ints  # HostState: IDLE (whether or not a job runs), SWITCHING_ON, SWITCHING_OFF, SLEEPING


class HostUses(NamedTuple):
    """Jobs on hosts, by host and start. Columns of length n."""

    host: Ints
    start: Floats  # seconds
    runtime: Floats  # seconds


def split_energy(record: RunRecord, platform: Platform, begin: float | None = None) -> EnergySplit:
    """Split the energy of a run.

    Joules of a state are ``sum(watts of the pstate * seconds in it)``; a host is idle in a computing pstate while no
    job runs on it. All are nan where energy was not simulated.

    Args:
        record: the run.
        platform: its hosts, with what they draw.
        begin: when to begin to count, seconds, and until the last server is off, whatever the hosts; None: from the
            first submission.
    """
    jobs = only_ran(record.jobs)
    if record.pstates is None or not jobs.id:
        return EnergySplit(total=math.nan, computing=math.nan, idle=math.nan, switching=math.nan, sleeping=math.nan)
    hosts = (*platform.hosts, *platform.storage)
    first = float(record.jobs.submit_time.min()) if begin is None else begin
    last = float((jobs.start_time + jobs.runtime).max())
    uses = host_uses(jobs)
    if any(platform.servers) or begin is not None:  # a server with a job on one of its hosts is idle on none
        stays = _stays(record.pstates, hosts, first, max(last, all_off(record.pstates, platform)))
        alone, shared = _joules(stays, _uses_of_servers(uses, platform)), _joules(stays, uses)
        switching = float(alone[HostState.SWITCHING_ON] + alone[HostState.SWITCHING_OFF])
        # A job's joules are those of its hosts, whoever else computes there: their sum says nothing of shared hosts.
        of_jobs = math.nan if _shared(uses, jobs) else float(jobs.energy.sum())
        computing = of_jobs + float(shared[HostState.IDLE] - alone[HostState.IDLE])
        idle, sleeping = float(alone[HostState.IDLE]), float(alone[HostState.SLEEPING])
        total = computing + idle + switching + sleeping
        return EnergySplit(total=total, computing=computing, idle=idle, switching=switching, sleeping=sleeping)
    joules = _joules(_stays(record.pstates, hosts, first, last), uses)
    return EnergySplit(
        total=record.joules,
        computing=record.joules - float(joules.sum()) if _shared(uses, jobs) else float(jobs.energy.sum()),
        idle=float(joules[HostState.IDLE]),
        switching=float(joules[HostState.SWITCHING_ON] + joules[HostState.SWITCHING_OFF]),
        sleeping=float(joules[HostState.SLEEPING]),
    )


def all_off(table: PstateTable, platform: Platform) -> float:
    """When (seconds) the last host fell asleep for good; 0 where not all sleep in the end."""
    row, host = _pairs(table.hosts)
    final = np.full(len(platform.hosts), -1)
    since = np.zeros(len(platform.hosts))
    compute = host < len(platform.hosts)
    final[host[compute]], since[host[compute]] = row[compute], table.time[row[compute]]  # the last row of each counts
    asleep = [int(table.pstate[at]) in platform.hosts[h].sleep_pstates for h, at in enumerate(final.tolist())]
    return float(since.max()) if all(asleep) else 0.0


def server_numbers(platform: Platform) -> Ints:
    """The number of each host's server, (H,)."""
    number: dict[str | int, int] = {}
    keys = (name or host for host, name in enumerate(platform.servers))
    return np.array([number.setdefault(key, len(number)) for key in keys], np.int64)


def _uses_of_servers(uses: HostUses, platform: Platform) -> HostUses:
    """Each host's busy times are those of its server: the union of all of its hosts'."""
    server = server_numbers(platform)
    owners, begins, ends = busy_periods(uses, server)
    first, count = np.searchsorted(owners, server), np.bincount(owners, minlength=server.max() + 1)[server]
    which = np.concatenate([np.arange(b, b + n) for b, n in zip(first.tolist(), count.tolist(), strict=True)])
    which = which.astype(np.int64)
    return HostUses(np.repeat(np.arange(len(server)), count), begins[which], (ends - begins)[which])


def busy_periods(uses: HostUses, server: Ints) -> tuple[Ints, Floats, Floats]:
    """Server, begin and end (seconds) of the periods in which a job runs on one of its hosts, by server and begin."""
    order = np.lexsort((uses.start, server[uses.host]))
    owner, start = server[uses.host][order], uses.start[order]
    end = start + uses.runtime[order]
    far = (end.max() if len(end) else 0.0) + 1.0
    latest = np.maximum.accumulate(end + owner * far) - owner * far  # of this and the earlier ones on the server
    opens = np.ones(len(owner), bool)
    opens[1:] = (owner[1:] != owner[:-1]) | (start[1:] > latest[:-1])
    at = np.flatnonzero(opens)
    return owner[at], start[at], latest[np.append(at[1:], len(start)) - 1] if len(at) else start


def count_switches(record: RunRecord, platform: Platform, begin: float | None = None) -> float:
    """Hosts that were asked to change pstate; of servers each counts once. nan where energy was not simulated.

    Args:
        record: the run.
        platform: its hosts.
        begin: when to begin to count, seconds; the beginning of the run if None.
    """
    table = record.pstates
    if table is None:
        return math.nan
    if begin is None and not any(platform.servers):
        return float(record.nb_switches)
    row, host = _pairs(table.hosts)
    asked = (table.pstate[row] < 0) & (table.time[row] >= (begin or 0.0)) & (host < len(platform.hosts))
    server = server_numbers(platform)[host[asked]]
    return float(len(np.unique(np.column_stack((table.time[row][asked], server)), axis=0)))


def energy_over_time(record: RunRecord, platform: Platform, times: Floats) -> Floats:
    """Joules by what hosts did, as in `split_energy`, from the beginning to each of the times.

    Args:
        record: the run, in which energy was simulated.
        platform: its hosts, with what they draw.
        times: (n,) seconds, ascending.

    Returns:
        (n, 6) joules in each HostState; what is not idle, switching or asleep was computing.
    """
    if record.pstates is None or record.energy is None:
        return np.full((len(times), len(HostState)), math.nan)
    uses = host_uses(only_ran(record.jobs))
    if any(platform.servers):
        uses = _uses_of_servers(uses, platform)
    stays = _stays(record.pstates, (*platform.hosts, *platform.storage), 0.0, float(times[-1]))
    ends = ((stays._replace(begin=np.minimum(stays.begin, t), end=np.minimum(stays.end, t))) for t in times)
    joules = np.array([_joules(until, uses) for until in ends])
    total = np.interp(times, record.energy.time, np.asarray(record.energy.energy, float), left=0.0)
    joules[:, HostState.COMPUTING] = total - joules.sum(axis=1)
    return joules


def _joules(stays: _Stays, uses: HostUses) -> Floats:
    """Joules of the stays by state, (6,); while a job runs on it a host is not idle."""
    seconds, everyone = stays.end - stays.begin, np.unique(stays.host)
    busy = np.zeros(len(stays.host))  # seconds of each stay in which a job runs on the host
    for stay, at in zip(_groups(stays.host, everyone), _groups(uses.host, everyone), strict=True):
        busy[stay] = _busy_until(uses.start[at], uses.runtime[at], stays.end[stay])
        busy[stay] -= _busy_until(uses.start[at], uses.runtime[at], stays.begin[stay])
    computes = stays.state == HostState.IDLE
    seconds[computes] -= busy[computes]
    joules: Floats = np.bincount(stays.state, weights=seconds * stays.watts, minlength=len(HostState)).astype(float)
    return joules


def _stays(table: PstateTable, hosts: tuple[Host, ...], first: float, last: float) -> _Stays:
    """Every host's pstates between two times, seconds."""
    row, host = _pairs(table.hosts)
    order = np.lexsort((row, host))
    row, host = row[order], host[order]
    code, begin = table.pstate[row], table.time[row]
    same = np.append(host[1:] == host[:-1], False)  # the next row is of the same host
    end = np.where(same, np.roll(begin, -1), np.inf)
    before, after = np.roll(code, 1), np.where(same, np.roll(code, -1), -1)
    # What a host without a job draws and does, by its row of the table and the pstates around it.
    watts, state = np.zeros(len(host)), np.zeros(len(host), np.int64)
    for at, (number, now, b, a) in enumerate(zip(host.tolist(), code, before, after, strict=True)):
        each = hosts[number]
        if now == _SWITCHING_ON and b in each.sleep_pstates:
            watts[at], state[at] = each.pstates[_sleep(each, b).switch_on].full, HostState.SWITCHING_ON
        elif now == _SWITCHING_OFF:
            watts[at], state[at] = each.pstates[_sleep(each, a).switch_off].full, HostState.SWITCHING_OFF
        else:
            power = each.pstates[now if now >= 0 else b]  # from one computing pstate to another it takes no time
            watts[at] = power.idle if power.speed > 0 else power.full  # one without speed is always at full load
            state[at] = HostState.SLEEPING if now in each.sleep_pstates else HostState.IDLE
    return _Stays(host, np.clip(begin, first, last), np.clip(end, first, last), watts, state)


def _sleep(host: Host, pstate: int) -> SleepState:
    return next((sleep for sleep in host.sleep if sleep.pstate == pstate), host.sleep[0])


def _pairs(sets: Sequence[str]) -> tuple[Ints, Ints]:
    """All pairs of a set's number and a host in it."""
    hosts = [np.array(parse_hosts(text), np.int64) for text in sets]
    lengths = [len(group) for group in hosts]
    return np.repeat(np.arange(len(hosts)), lengths), np.concatenate(hosts) if hosts else np.zeros(0, np.int64)


def host_uses(jobs: JobTable) -> HostUses:
    """When a job ran on each host; where jobs shared hosts, the union of their times."""
    job, host = _pairs(jobs.allocation)
    order = np.lexsort((jobs.start_time[job], host))
    uses = HostUses(host[order], jobs.start_time[job[order]], jobs.runtime[job[order]])
    # Whether two jobs ran on one host at a time; what is less than a microsecond is rounding
    begins_early = uses.start[1:] < (uses.start + uses.runtime)[:-1] - 1e-6
    if not (begins_early & (uses.host[1:] == uses.host[:-1])).any():
        return uses
    owner, begin, end = busy_periods(uses, np.arange(int(host.max()) + 1))
    return HostUses(owner, begin, end - begin)


def _shared(uses: HostUses, jobs: JobTable) -> bool:
    """Whether the uses of some jobs are fewer than their hosts."""
    return len(uses.host) < len(_pairs(jobs.allocation)[0])


def _groups(ascending: Ints, values: Ints) -> Iterator[slice]:
    """Where each of the values stands."""
    return map(slice, np.searchsorted(ascending, values), np.searchsorted(ascending, values, side="right"))


def _busy_until(start: Floats, runtime: Floats, times: Floats) -> Floats:
    """Seconds before each of `times` in which one of the jobs runs; jobs in order and one at a time."""
    done = np.append(0.0, np.cumsum(runtime))
    running = np.searchsorted(start, times, side="right") - 1  # the last job that began
    began = np.append(start, 0.0)[running]
    lasts = np.append(runtime, 0.0)[running]
    return np.where(running < 0, 0.0, done[running] + np.minimum(times - began, lasts))


# What the energy of a run emitted and cost, and the most that was drawn at a time.
#
# Energy is counted as Batsim does, from the first submission to the last end of a job. Between the rows of its energy
# table power is constant.

_KWH = 3.6e6  # joules
_INSTANT = 1e-3  # seconds: rows that are nearer are of one instant


def emitted(record: RunRecord) -> float:
    """``integral of P(t) * c(t)``: grams, c in g per kWh; nan without energy, or where nothing says c."""
    return _rated(record, record.carbon)


def paid(record: RunRecord) -> float:
    """``integral of P(t) * c(t)``: what energy cost, c per kWh; nan without energy, or where nothing says c."""
    return _rated(record, record.price)


def _rated(record: RunRecord, table: RateTable | None) -> float:
    """Before the table's first time its first rate holds, after its last time the last."""
    jobs = only_ran(record.jobs)
    if table is None or record.energy is None or not jobs.id:
        return math.nan
    first, last = float(record.jobs.submit_time.min()), float((jobs.start_time + jobs.runtime).max())
    inside = (table.time > first) & (table.time < last)
    edges = np.concatenate([[first], table.time[inside], [last]])
    rate = table.rate[np.maximum(np.searchsorted(table.time, edges[:-1], side="right") - 1, 0)]
    joules = np.interp(edges, record.energy.time, np.asarray(record.energy.energy, float), left=0.0)  # up to each edge
    return float((np.diff(joules) * rate).sum() / _KWH)


def peak_power(record: RunRecord) -> float:
    """``max P(t)``: watts, of all that lasted for a millisecond; nan where energy was not simulated."""
    if record.energy is None or len(record.energy.time) < 2:
        return math.nan
    time, joules = np.asarray(record.energy.time, float), np.asarray(record.energy.energy, float)
    kept = np.append(True, np.diff(time) > _INSTANT)
    at = np.flatnonzero(kept)
    ends = np.append(at[1:] - 1, len(time) - 1)  # the last row of each instant
    seconds = time[at[1:]] - time[ends[:-1]]
    return float(((joules[at[1:]] - joules[ends[:-1]]) / seconds).max()) if len(at) > 1 else math.nan


# The least waste that any shutdown of servers allows with the same starts.


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
    uses = host_uses(jobs)
    compute = uses.host < len(server)  # those of storage come after them
    uses = HostUses(uses.host[compute], uses.start[compute], uses.runtime[compute])
    owner, start, end = busy_periods(uses, server)
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
