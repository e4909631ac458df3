"""What Batsim 5.0.0-rc2 writes about the states of hosts: one that has computed counts as computing until it switches.

Made from the rows of the engine's own trace, of which each is the start or the end of a job, or of a switch.
"""

from collections.abc import Collection, Sequence

import msgspec
import numpy as np

from decision.model.hosts import parse_hosts
from decision.model.record import HostState, HostTable, PstateTable, RunRecord

from .compiled import CompiledEngine

_SWITCHING = (HostState.SWITCHING_ON, HostState.SWITCHING_OFF)


class _Hosts:
    """The states of hosts, and how long they were in each."""

    def __init__(self, nb_hosts: int) -> None:
        self.state = np.full(nb_hosts, HostState.IDLE, np.int8)
        self.since = np.zeros(nb_hosts)
        self.seconds = np.zeros(len(HostState))
        self.counts = np.zeros(len(HostState), np.int64)
        self.counts[HostState.IDLE] = nb_hosts

    def enter(self, hosts: Sequence[int], state: HostState, time: float) -> None:
        for host in hosts:
            self.seconds[self.state[host]] += time - self.since[host]
            self.counts[self.state[host]] -= 1
            self.counts[state] += 1
            self.state[host], self.since[host] = state, time


def with_busy_hosts(
    record: RunRecord, engine: CompiledEngine, starts: Sequence[int], at_once: Collection[int]
) -> RunRecord:
    """The record as Batsim 5 writes it.

    Args:
        record: of a run that is over.
        engine: that made it.
        starts: the jobs that were started, in that order.
        at_once: the numbers of requests to switch that took no time.
    """
    hosts, table = _Hosts(len(engine.platform.hosts) + len(engine.platform.storage)), record.host_states
    switches = _switches(engine, at_once)
    jobs = iter(starts)
    before, counts = np.zeros(len(HostState)), np.zeros_like(table.counts)
    before[HostState.IDLE] = len(hosts.state)
    kept = np.ones(len(table.time), bool)
    for row, (time, now) in enumerate(zip(table.time.tolist(), table.counts, strict=True)):
        if now[HostState.COMPUTING] > before[HostState.COMPUTING]:
            hosts.enter(parse_hosts(engine.allocation(next(jobs))), HostState.COMPUTING, time)
        elif now[HostState.COMPUTING] == before[HostState.COMPUTING]:
            kept[row] = _switch(hosts, switches, time)
        counts[row], before = hosts.counts, now
    return msgspec.structs.replace(
        record,
        host_states=HostTable(time=table.time[kept], counts=counts[kept]),
        time_in_state=hosts.seconds,
        pstates=_pstates(record, engine, at_once),
        nb_switches=record.nb_switches - sum(len(parse_hosts(engine.switched_hosts(r))) for r in at_once),
        nb_grouped_switches=record.nb_grouped_switches - len(at_once),
    )


def _switches(engine: CompiledEngine, at_once: Collection[int]) -> list[tuple[float, list[int], HostState]]:
    """What hosts enter at which time by switches, in that order, latest first."""
    rows, sim = engine.world.rows, engine.world.sim
    found = []
    for row in range(sim.nb_pstate_rows):
        request, value = int(rows.pstate_switch[row]), int(rows.pstate_value[row])
        hosts = parse_hosts(engine.switched_hosts(request))
        sleeps = any(value in engine.platform.hosts[host].sleep_pstates for host in hosts)
        done = HostState.SLEEPING if sleeps else HostState.IDLE
        state = _SWITCHING[-value - 1] if value < 0 else done
        if request not in at_once:
            found.append((float(rows.pstate_time[row]), hosts, state))
    return found[::-1]


def _switch(hosts: _Hosts, switches: list[tuple[float, list[int], HostState]], time: float) -> bool:
    """Let the next switch begin or end, if there is one now; whether there is."""
    if not switches or switches[-1][0] > time:
        return False
    begin, which, state = switches.pop()
    hosts.enter(which, state, begin)
    return True


def _pstates(record: RunRecord, engine: CompiledEngine, at_once: Collection[int]) -> PstateTable | None:
    """The pstate trace, in which a change that takes no time has one row."""
    table = record.pstates
    if table is None or not at_once:
        return table
    number = int(engine.world.sim.nb_pstate_rows)
    requests, values = engine.world.rows.pstate_switch[:number], engine.world.rows.pstate_value[:number]
    begun = np.isin(requests, list(at_once)) & (values < 0)
    keep = np.concatenate([np.ones(len(table.time) - number, bool), ~begun])
    hosts = [text for text, stays in zip(table.hosts, keep.tolist(), strict=True) if stays]
    return PstateTable(time=table.time[keep], hosts=hosts, pstate=table.pstate[keep])
