"""The hosts of the reference engine: what they do, how fast they are, what they draw (SimGrid's host energy model)."""

from dataclasses import dataclass, field
from typing import Protocol

from decision.model.platform import Host, PowerState, Route
from decision.model.record import HostState


class Load(Protocol):
    """What computes on a host: a `ParallelTask`."""

    def flops_on(self, machine: "HostMachine") -> float:
        """Flop/s that it computes there."""

    def rescale(self, now: float) -> None:
        """Go on at the present speeds of its hosts, of which one has changed."""


@dataclass(slots=True, eq=False)
class HostMachine:
    """One host: Batsim's view of it (traced, job) and SimGrid's (pstate, task, joules).

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
    job: str = ""  # id of the job that is being computed here
    task: Load | None = None  # what puts load on it
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
        flops = self.task.flops_on(self) if self.task else 0.0
        load = min(1.0, flops / power.speed) if power.speed > 0 else 1.0
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
        if self.task:
            self.task.rescale(now)
