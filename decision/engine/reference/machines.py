"""The hosts of the reference engine: what they do, how fast they are, what they draw (SimGrid's host energy model)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, prod
from typing import Protocol

from decision.engine.rules import SHARE_PRECISION, TCP_WINDOW
from decision.model.platform import FatTree, Flat, Host, Platform, PowerState, Route
from decision.model.record import HostState


class Load(Protocol):
    """What computes on a host: a `ParallelTask`."""

    def flops_on(self, machine: "HostMachine") -> float:
        """Flop/s that it computes there."""

    def rescale(self, now: float) -> None:
        """Go on at the present speeds of its hosts, of which one has changed."""


@dataclass(slots=True, eq=False)
class HostMachine:
    """One host: Batsim's view of it (traced, jobs) and SimGrid's (pstate, tasks, joules).

    Batsim has one state, `traced`: a host that is away is back in it when a switch ends, and idle once it is back,
    though it sleeps. What may be done to a host goes by `state`.
    """

    facts: Host
    metered: bool  # whether energy is simulated
    route: Route = Route()  # noqa: RUF009 - of its messages to the master; immutable
    pstate: int = field(init=False)
    doing: HostState = HostState.IDLE  # whether or not it is away
    away: bool = False  # from the event that takes it away to the one that brings it back
    traced: HostState = HostState.IDLE
    traced_since: float = 0.0  # seconds
    time_in_state: list[float] = field(default_factory=lambda: [0.0] * len(HostState))  # seconds, up to `traced_since`
    jobs: list[str] = field(default_factory=list)  # ids of the jobs that are being computed here
    tasks: list[Load] = field(default_factory=list)  # what puts load on it, in the order in which they began
    metered_pstate: int = 0  # which SimGrid takes it to be in: 0 until it first looks
    joules: float = 0.0  # up to `measured_at`
    measured_at: float = 0.0  # seconds

    def __post_init__(self) -> None:
        self.pstate = self.facts.initial_pstate

    @property
    def id(self) -> int:
        """Batsim's number of the host."""
        return self.facts.id

    @property
    def state(self) -> HostState:
        """What it does, as far as it is here."""
        return HostState.UNAVAILABLE if self.away else self.doing

    @property
    def power(self) -> PowerState:
        """Speed and watts of the present pstate."""
        return self.facts.pstates[self.pstate]

    @property
    def speed(self) -> float:
        """Flop per second in the present pstate."""
        return self.power.speed

    @property
    def computes(self) -> bool:
        """Whether the present pstate is one in which jobs can run."""
        return self.facts.is_computing_pstate(self.pstate)

    def trace(self, state: HostState, now: float) -> None:
        """Change the traced state; the time in the old one is added up only now, as Batsim does."""
        self.time_in_state[self.traced] += now - self.traced_since
        self.traced, self.traced_since = state, now

    def watts(self) -> float:
        """What the host draws now, as SimGrid has it; a pstate of speed 0 counts as fully used."""
        # The last pstate that SimGrid has seen, which need not be the present one.
        power = self.facts.pstates[self.metered_pstate]
        flops = sum(task.flops_on(self) for task in reversed(self.tasks))  # SimGrid adds them up from the latest on
        # In cores: `full` is what the host draws where one core is used.
        load = min(float(self.facts.cores), flops / power.speed) if power.speed > 0 else 1.0
        return power.epsilon + load * (power.full - power.epsilon) if load > 0 else power.idle

    def needs_measure(self, now: float) -> bool:
        """Whether `joules` is not up to date."""
        return self.metered and self.measured_at < now

    def measure(self, now: float) -> None:
        """Bring `joules` up to date; what changes load or pstate does it before."""
        if self.needs_measure(now):
            self.joules += self.watts() * (now - self.measured_at)
            self.measured_at = now
            self.metered_pstate = self.pstate

    def look(self, now: float) -> None:
        """Let SimGrid look at the host, also where no time has passed."""
        self.measure(now)
        self.metered_pstate = self.pstate

    def set_pstate(self, pstate: int, now: float) -> None:
        """Change the pstate; a task that runs here goes on at the new speed."""
        # At the old load and pstate, up to now.
        self.measure(now)
        self.pstate = self.metered_pstate = pstate
        for task in self.tasks:
            task.rescale(now)


# Links, the ways between hosts, and how tasks that communicate share them: SimGrid's own steps, to be read.
#
# Ways follow the labels of SimGrid's fat-tree; where links are pooled they are a tree's. Rates are those of the solver
# "fair bottleneck" of the model L07, which `decision.engine.kernels.network` describes; this is its twin.

_Key = tuple[object, ...]


@dataclass(slots=True, eq=False)
class Constraint:
    """What tasks share, as SimGrid's solver calls it: a link in one direction, or all cores of a host."""

    width: float  # bytes/s, flop/s
    latency: float = 0.0  # seconds
    left: float = 0.0
    share: float = 0.0


class Communication(Protocol):
    """A task that takes its share of links or of hosts: a `ParallelTask`."""

    work: list[tuple[HostMachine, float]]  # flop of each executor, and where it is
    sent: list[tuple[HostMachine, HostMachine, float]]  # bytes from executor to executor, of pairs that have any
    flow: "Flow | None"  # once it takes its share
    rate: float  # share of the task per second


@dataclass(slots=True, eq=False)
class Flow:
    """A task that takes its share of links and processors."""

    network: "PlatformLinks"
    task: Communication
    # Bytes of each link, and flop of each executor: one host may stand there twice.
    needs: list[tuple[Constraint, float]] = field(default_factory=list)
    limit: float = inf  # share per second
    rate: float = 0.0
    rise: float = 0.0  # of the last round


class PlatformLinks:
    """The links of a platform, made when somebody first sends over them."""

    def __init__(self, platform: Platform) -> None:
        self._topology = platform.topology
        self._places = platform.places or tuple(range(len(platform.hosts)))
        self._servers = [host.properties.get("server", host.name) for host in platform.hosts]
        self._links: dict[_Key, Constraint] = {}
        self._processors: dict[HostMachine, Constraint] = {}
        self._flows: list[Flow] = []  # in the order in which they began
        self.changed = False

    # --- Ways ---------------------------------------------------------------------------------------------

    def way(self, sender: int, receiver: int) -> list[Constraint]:
        """The links from one host to another, by id."""
        topology = self._topology
        if isinstance(topology, Flat):
            link, backbone = topology.link, topology.backbone
            up = self._link(("up", self._servers[sender]), link.bandwidth, link.latency)
            down = self._link(("down", self._servers[receiver]), link.bandwidth, link.latency)
            return [up, self._link(("bb",), backbone.bandwidth, backbone.latency), down] if backbone else [up, down]
        assert isinstance(topology, FatTree)
        start, goal = self._places[sender], self._places[receiver]
        if not topology.pooled:
            return self._fat_tree_way(topology, start, goal)
        ups: list[Constraint] = []
        downs: list[Constraint] = []
        for level, link in enumerate(topology.links):
            width = link.bandwidth * (prod(topology.up[: level + 1]) * topology.cables[level])
            ups.append(self._link(("up", level, start), width, link.latency))
            downs.insert(0, self._link(("down", level, goal), width, link.latency))
            start, goal = start // topology.down[level], goal // topology.down[level]
            if start == goal:
                break
        return ups + downs

    def _link(self, key: _Key, bandwidth: float, latency: float) -> Constraint:
        return self._links.setdefault(key, Constraint(bandwidth, latency))

    def _fat_tree_way(self, tree: FatTree, sender: int, receiver: int) -> list[Constraint]:
        """Up by d-mod-k to the first switch above the receiver, and down by the receiver's labels.

        A device's label has a digit for each level; below its own level digits count switches, above it subtrees.
        """
        target = _label(receiver, tree.down)
        label, level, way = _label(sender, tree.down), 0, []
        while level == 0 or label[level:] != target[level:]:
            port = receiver // prod(tree.up[:level]) % (tree.up[level] * tree.cables[level])
            way.append(self._cable(tree, "up", level, label, port))
            label[level] = port % tree.up[level]
            level += 1
        # Down: the sender's place chooses among parallel cables to the first child.
        while level > 0:
            child, below = level - 1, tree.down[level - 1]
            start = sender % tree.cables[child] * below
            for port in range(start, below * tree.cables[child]):
                if port % below == target[child]:
                    break
            # SimGrid goes on from the port that it has, though that is another switch's, while a later one leads there.
            while True:
                above, label[child] = label[child], target[child]
                way.append(self._cable(tree, "down", child, label, above + port // below * tree.up[child]))
                level, child = child, child - 1
                if level == 0:
                    break
                below = tree.down[child]
                ports = range(port + 1, below * tree.cables[child])
                later = [p for p in ports if p % below == target[child]]
                if not later:
                    break
                port = later[0]
        return way

    def _cable(self, tree: FatTree, way: str, level: int, label: Sequence[int], port: int) -> Constraint:
        """The cable from a device below, of this label, to a port above it."""
        return self._link((way, level, *label, port), tree.links[level].bandwidth, tree.links[level].latency)

    # --- Flows --------------------------------------------------------------------------------------------

    def latency(self, task: Communication) -> float:
        """Seconds before the bytes of a task flow: the longest latency that any of them has."""
        return max((self._delay(sender, receiver) for sender, receiver, _ in task.sent), default=0.0)

    def _delay(self, sender: HostMachine, receiver: HostMachine) -> float:
        return sum(link.latency for link in self.way(sender.id, receiver.id))

    def begin(self, task: Communication) -> None:
        """A task takes its share from now on."""
        flow = Flow(self, task)
        for machine, flops in task.work:
            if flops > 0:
                flow.needs.append((self._processors.setdefault(machine, Constraint(0.0)), flops))
        through: dict[Constraint, float] = {}
        for sender, receiver, sent in task.sent:
            for link in self.way(sender.id, receiver.id):
                through[link] = through.get(link, 0.0) + sent
        flow.needs += through.items()
        task.flow = flow
        self._flows.append(flow)
        self.note_speeds(task)

    def note_speeds(self, task: Communication) -> None:
        """A machine of a task has its speed, or a new one."""
        assert task.flow is not None
        for machine, _ in task.work:
            if machine in self._processors:
                self._processors[machine].width = machine.facts.cores * machine.speed
        delay = max((self._delay(sender, receiver) * sent for sender, receiver, sent in task.sent), default=0.0)
        # An executor has one core at most.
        slowest = min((machine.speed / flops for machine, flops in task.work if flops > 0), default=inf)
        task.flow.limit = min(slowest, TCP_WINDOW / (2.0 * delay) if delay > 0 else inf)
        self.changed = True

    def end(self, task: Communication) -> None:
        """A task leaves its share to others."""
        if task.flow in self._flows:
            self._flows.remove(task.flow)
            self.changed = True

    def share(self) -> None:
        """Set the rates of all tasks that share, if any began or ended, or a machine has another speed."""
        if not self.changed:
            return
        self.changed = False
        rising = list(self._flows)
        # Water filling, from nothing: all rates rise together until a resource is full, and its users stay there.
        for flow in rising:
            flow.rate = 0.0
        live = {resource for flow in rising for resource, _ in flow.needs}
        for resource in live:
            resource.left = resource.width
        while rising:
            rising = self._round(live, rising)
        for flow in self._flows:
            flow.task.rate = flow.rate

    def _round(self, live: set[Constraint], rising: list[Flow]) -> list[Flow]:
        """All flows that may rise do; returns those that still may."""
        # What each resource has for each flow that uses it and may still rise.
        users = dict.fromkeys(live, 0)
        for flow in rising:
            for resource, _ in flow.needs:
                users[resource] += 1
        for resource, count in users.items():
            if count == 0:
                live.remove(resource)
            else:
                resource.share = resource.left / count
        # Each flow rises by what its tightest resource has for it.
        for flow in rising:
            flow.rise = min(resource.share / amount for resource, amount in flow.needs)
            flow.rise = min(flow.rise, flow.limit - flow.rate)
            flow.rate += flow.rise
        # Resources lose that, and also once more the last rise of flows that rise no more: SimGrid's own rule. The
        # latest flow is first: a resource with less than the precision left counts as full, and rounding decides.
        for flow in reversed(self._flows):
            for resource, amount in reversed(flow.needs):
                left = resource.left - amount * flow.rise
                resource.left = left if left >= SHARE_PRECISION else 0.0
        # Those of a full resource, or at their own limit, rise no more.
        full = {resource for resource in live if resource.left <= 0}
        live -= full
        return [
            flow
            for flow in rising
            if flow.rate != flow.limit and not any(resource in full for resource, _ in flow.needs)
        ]


def _label(place: int, down: Sequence[int]) -> list[int]:
    """A host's number within each subtree that it is in, the smallest first."""
    digits = []
    for below in down:
        place, digit = divmod(place, below)
        digits.append(digit)
    return digits
