"""Changes of pstate that are under way: each request is told as done when its last host is."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from decision.model.hosts import format_hosts
from decision.model.record import HostState
from decision.protocol import ResourceStateChanged, ResourceStateChangedData

from .reference_actors import switch
from .reference_kernel import Call, Steps
from .reference_machines import Machine
from .reference_rows import SWITCHING_TO_COMPUTE, SWITCHING_TO_SLEEP
from .reference_world import World


@dataclass(slots=True, eq=False)
class Group:
    """The hosts of one request."""

    hosts: str
    pstate: int
    left: set[Machine]


class Switches:
    """The requests under way."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.groups: list[Group] = []  # oldest first
        self.nb_switching = 0  # hosts on their way to or from sleep

    def request(self, machines: Sequence[Machine], pstate: int) -> Steps[None]:
        """Change the hosts' pstate: at once between computing pstates, else through a virtual pstate."""
        rows = self.world.rows
        group = Group(format_hosts(machine.id for machine in machines), pstate, set(machines))
        self.groups.append(group)
        yield from self.world.energy_row("p")
        to_compute = machines[0].facts.is_computing_pstate(pstate)
        way = SWITCHING_TO_COMPUTE if to_compute else SWITCHING_TO_SLEEP
        rows.pstates.append((self.world.now, group.hosts, way))
        rows.nb_grouped_switches += 1
        rows.nb_switches += len(machines)
        for machine in machines:
            yield from self._begin(machine, pstate)
        self.world.host_row()

    def _begin(self, machine: Machine, pstate: int) -> Steps[None]:
        if not machine.computes:
            way = next(sleep.switch_on for sleep in machine.facts.sleep if sleep.pstate == machine.pstate)
            yield from self._go(machine, way, pstate, HostState.SWITCHING_ON, HostState.IDLE)
        elif pstate in machine.facts.sleep_pstates:
            way = next(sleep.switch_off for sleep in machine.facts.sleep if sleep.pstate == pstate)
            yield from self._go(machine, way, pstate, HostState.SWITCHING_OFF, HostState.SLEEPING)
        else:
            yield Call(partial(machine.set_pstate, pstate, self.world.now))
            group = yield from self._mark_done(machine, pstate)
            self._tell(group)

    def _go(self, machine: Machine, way: int, pstate: int, during: HostState, after: HostState) -> Steps[None]:
        self.world.enter(machine, during)
        yield Call(partial(self.world.kernel.start, switch(self.world, machine, way, pstate, after), machine))
        self.nb_switching += 1

    def on_switched(self, machine: Machine, pstate: int) -> Steps[None]:
        """A host has arrived in its pstate."""
        group = yield from self._mark_done(machine, pstate)
        if group:
            self.world.host_row()
        self._tell(group)
        self.nb_switching -= 1

    def _mark_done(self, machine: Machine, pstate: int) -> Steps[Group | None]:
        """Note that a host has arrived; returns the request that it completes."""
        group = next(group for group in self.groups if group.pstate == pstate and machine in group.left)
        group.left.remove(machine)
        if group.left:
            return None
        self.groups.remove(group)
        self.world.rows.pstates.append((self.world.now, group.hosts, pstate))
        yield from self.world.energy_row("p")
        return group

    def _tell(self, group: Group | None) -> None:
        if group:
            data = ResourceStateChangedData(group.hosts, str(group.pstate))
            self.world.server.outbox.append(ResourceStateChanged(self.world.told_now, data))
