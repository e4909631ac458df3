"""What both engines say of the impossible: commands, external events, and a simulation that cannot go on.

The reference engine also decides with these functions what is possible; the compiled one decides in kernels
(`decision.engine.kernels.commands.is_possible`), and asks here only for the words.
"""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple, Protocol

from decision.engine.constants import LAST_INSTANT
from decision.model.errors import ConfigError, DeadlockError, DecisionError
from decision.model.notices import warn_once
from decision.model.platform import Host, Platform
from decision.model.record import HostState
from decision.model.topology import FatTree, Flat
from decision.model.workload import POWER_SUPPLY, MachineEvent

ADVICE = "run this workload with Batsim"
COMMANDS_AFTER_END = "the reply to SIMULATION_ENDS has commands; it must have none"

_NAMED_JOBS = 5  # that an error names


class JobPhase(Enum):
    """Where a job is in its life."""

    UNKNOWN = "not submitted"
    SUBMITTED = "submitted"
    RUNNING = "running"
    ENDED = "ended"


class AnyHost(Protocol):
    """What must be known of a host to say why something cannot be done with it."""

    @property
    def facts(self) -> Host: ...
    @property
    def state(self) -> HostState: ...
    @property
    def job(self) -> str: ...  # id of the job that it computes, "" where there is none
    @property
    def pstate(self) -> int: ...


class HostNow(NamedTuple):
    """The same as a tuple."""

    facts: Host
    state: HostState
    job: str
    pstate: int


def network_refusal(platform: Platform) -> str:
    """Why jobs that communicate cannot be simulated on this platform; empty if they can."""
    topology = platform.topology
    if topology is None:
        return "the platform's topology is unknown"
    if not isinstance(topology, Flat | FatTree):
        return f"the embedded engine has no network of the kind {type(topology).__name__.lower()}"
    if platform.unmodelled:
        return f"the embedded engine has no network with {platform.unmodelled}"
    return ""


# --- Commands ------------------------------------------------------------------------------------------------


def phase_refusal(job_id: str, verb: str, phase: JobPhase) -> str:
    """Why a job cannot start or be rejected; empty if it can."""
    return "" if phase is JobPhase.SUBMITTED else f"{job_id} cannot {verb}: it is {phase.value}"


def size_refusal(job_id: str, size: int, moldable: bool, given: int, what: str = "hosts") -> str:
    """Why a job cannot have so many hosts or executors; empty if it can."""
    return "" if given == size or moldable else f"{job_id} needs {size} {what}, {given} given"


def start_refusal(job_id: str, alloc: str, hosts: Sequence[AnyHost], energy: bool) -> str:
    """Why a job cannot start on these hosts, which were given as `alloc`; empty if it can."""
    for host in hosts:
        if host.job:
            reason = f"computes {host.job}"
        elif host.state is not HostState.IDLE:
            reason = f"is {_name(host.state)}"
        elif energy and not host.facts.is_computing_pstate(host.pstate):
            reason = f"cannot compute in pstate {host.pstate}"
        else:
            continue
        return f"{job_id} cannot start on hosts {alloc}: host {host.facts.id} {reason}"
    return ""


def switch_refusal(hosts: Sequence[AnyHost], pstate: int) -> str:
    """Why these hosts cannot go to a pstate; empty if they can."""
    for host in hosts:
        reason = _switch_reason(host, pstate)
        if reason:
            return f"host {host.facts.id} cannot go to pstate {pstate}: {reason}"
    return ""


def _switch_reason(host: AnyHost, pstate: int) -> str:
    computes, to_compute = host.facts.is_computing_pstate(host.pstate), host.facts.is_computing_pstate(pstate)
    if not 0 <= pstate < len(host.facts.pstates):
        return f"it has pstates 0 to {len(host.facts.pstates) - 1}"
    if pstate in host.facts.virtual_pstates:
        return "that pstate only models a switch"
    if host.state in (HostState.SWITCHING_ON, HostState.SWITCHING_OFF):
        return f"it is {_name(host.state)}"
    if computes and to_compute:
        return ""
    if host.job:
        return f"it computes {host.job}"
    if host.state is HostState.UNAVAILABLE:
        return "it is unavailable"
    if not computes and not to_compute:
        return f"it sleeps in pstate {host.pstate}; wake it first"
    return ""


def never_executed(job_id: str) -> str:
    """Why a job cannot be killed."""
    return f"{job_id} cannot be killed: it was never executed"


def become_refusal(job_id: str, wanted: str, phase: JobPhase, alloc: str) -> str:
    """Why CHANGE_JOB_STATE is impossible; `alloc` is where the job was executed, "" where it was not."""
    if alloc:
        return f"{job_id} was executed on hosts {alloc}; kill it instead"
    return f"{job_id} is {phase.value} and cannot become {wanted!r}"


def call_refusal(time: float) -> str:
    """Why the decision process cannot be called then."""
    return f"asked to be called at t={time:.12g} s, which is past"


def _name(state: HostState) -> str:
    return state.name.lower().replace("_", " ")


# --- External events, and a simulation that cannot go on -----------------------------------------------------


def warn_of_change_away(host: int, time: float) -> None:
    """Say that a host has fallen asleep or woken while it was away, and comes back: no Batsim 4 gives such a result."""
    ours = 'Batsim 4.2.1 ends itself there ("was not in UNAVAILABLE state"), so this result is ours alone'
    warn_once(f"t={time:.12g} s: host {host} comes back, which fell asleep or woke while it was away; {ours}")


def check_events(events: Sequence[MachineEvent], nb_hosts: int, places: Sequence[str] = ()) -> None:
    """Refuse external events, in order, that name a host which is not there, or that cannot happen one after the other.

    Args:
        events: in Batsim's order.
        nb_hosts: of the platform.
        places: where each was read, such as ``events.txt, line 3``, which begins the message.

    Raises:
        ConfigError: one line that names the event and the host.
    """
    away: set[int] = set()
    for at, event in enumerate(events):
        hosts, place = set(event.hosts), places[at] if places else ""
        if event.type == POWER_SUPPLY and event.hosts[0] > nb_hosts:
            raise _impossible(event, f"it has {event.hosts[0]} hosts, and the platform has {nb_hosts}", place)
        if event.type != POWER_SUPPLY and hosts and max(hosts) >= nb_hosts:
            raise _impossible(event, f"there is no host {max(hosts)}", place)
        if event.type == "machine_unavailable":
            if hosts & away:
                raise _impossible(event, f"host {min(hosts & away)} is unavailable already", place)
            away |= hosts
        elif event.type == "machine_available":
            if hosts - away:
                why = f"host {min(hosts - away)} is not unavailable"
                if any(other.timestamp == event.timestamp and hosts & set(other.hosts) for other in events[at + 1 :]):
                    why += ": at one instant hosts return before others leave"
                raise _impossible(event, why, place)
            away -= hosts


def _impossible(event: MachineEvent, reason: str, place: str) -> ConfigError:
    """The error of an external event that cannot happen."""
    what = f"external event {event.type} at t={event.timestamp:.12g} s: {reason}; correct the events"
    return ConfigError(f"{place}: {what}" if place else what)


def deadlock(now: float, waiting: Sequence[str], registration_open: bool, dark: int = 0) -> DecisionError:
    """Nothing can happen any more: which jobs wait, and what to do; `dark` hosts have no power."""
    if now > LAST_INSTANT:
        what = "the workload, the events or the policy ask for a time that no clock can count to"
        return ConfigError(f"t={now:.12g} s: a simulation ends at {LAST_INSTANT:g} s: {what}; give times in seconds")
    if waiting:
        more = f" and {len(waiting) - _NAMED_JOBS} more" if len(waiting) > _NAMED_JOBS else ""
        why = f" while {dark} host{'s' * (dark > 1)} without power stay so" if dark else ""
        way = "give them power in the end" if dark else "start or reject them, or ask to be called later"
        advice = f"{', '.join(waiting[:_NAMED_JOBS])}{more} wait{why}; {way}"
    elif registration_open:
        advice = "end the registration of jobs with NOTIFY registration_finished"
    else:
        advice = "jobs that were set to RUNNING must be set to a final state"
    return DeadlockError(f"t={now:.12g} s: nothing can happen any more: {advice}")
