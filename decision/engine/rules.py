"""What both engines share: Batsim's options and numbers, and what is impossible, with the words that say why.

The reference engine also decides with these functions what is possible; the compiled one decides in kernels
(`decision.engine.kernels.commands.is_possible`), and asks here only for the words.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from decision.model.errors import ConfigError, DeadlockError, DecisionError, warn_once
from decision.model.platform import FatTree, Flat, Host, Platform
from decision.model.record import HostState
from decision.model.workload import GENERIC, POWER_SUPPLY, MachineEvent, Workload
from decision.protocol.versions import V4, Version

# --- Numbers of Batsim and SimGrid that both engines keep to -------------------------------------------------

# SimGrid's own defaults, under the options surf/precision and maxmin/precision; a share has the product of both.
TIME_PRECISION = 1e-9  # seconds: with less than this left, a sleep is over
WORK_PRECISION = 1e-14  # share: with less than this left, a parallel task is over
LAST_INSTANT = 1e15  # seconds: from then on numbers of 53 bits do not tell tenths of a second apart
SHARE_PRECISION = 1e-5  # bytes/s or flop/s: with less than this left, a link or host is full
TCP_WINDOW = 4194304.0  # bytes: what bounds a flow, with the latency of its way
TASK_STEPS = 3  # requests to SimGrid's kernel before a parallel task begins: flops, bytes, hosts

SHORTEST_CALL = 1e-5  # seconds: Batsim's waiter never sleeps for less
DECIMALS = 6  # of the numbers in Batsim's messages

WALLTIME_CODE, KILLED_CODE = -1, -2  # return codes of jobs that were stopped
SWITCHING_TO_COMPUTE, SWITCHING_TO_SLEEP = -1, -2  # what the pstate trace says while hosts switch
START_ROW, END_ROW, PSTATE_ROW = "s", "e", "p"  # kinds of row in the energy trace

ADVICE = "run this workload with Batsim"
COMMANDS_AFTER_END = "the reply to SIMULATION_ENDS has commands; it must have none"

_NAMED_JOBS = 5  # that an error names
_EVENT_ORDER = {"machine_available": 0, "machine_unavailable": 1}  # of events at one instant


# --- What is simulated, and what cannot be -------------------------------------------------------------------


class EngineOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a simulation, under the meaning that Batsim 4 gives them."""

    energy: bool = False  # -E: pstates, switches and energy are simulated
    dynamic_jobs: bool = False  # --enable-dynamic-jobs: the decision process may register jobs
    acknowledge_dynamic_jobs: bool = False  # --acknowledge-dynamic-jobs: they are reported to it as any job
    profile_reuse: bool = False  # --enable-profile-reuse
    compute_sharing: bool = False  # --enable-compute-sharing: several jobs may compute on one host
    forward_profiles: bool = False  # --forward-profiles-on-submission
    forward_unknown_events: bool = False  # --forward-unknown-events
    sched_config: str = ""  # --sched-cfg
    calls: Literal["us", "ms"] = "us"  # a policy's calls are rounded to this; Batsim 5 takes no shorter time
    rules: Version = V4  # of the Batsim that is simulated
    trace: bool = True  # keep the host-state table (--disable-machine-state-tracing turns it off)
    forward_profiles_of_killed: bool = False  # of Batsim 5: with the progress of killed jobs
    forward_all_profiles: bool = False  # of Batsim 5: with SIMULATION_BEGINS, as Batsim 4 always does

    @property
    def may_register(self) -> bool:
        """Whether the decision process may register jobs; Batsim 5 takes them whether it asked for that or not."""
        return self.dynamic_jobs or not self.rules.asks_to_register

    @property
    def shares_hosts(self) -> bool:
        """Whether several jobs may compute on one host, which Batsim 5 never refuses."""
        return self.compute_sharing or self.rules.shares_hosts

    @property
    def keeps_profiles(self) -> bool:
        """Whether a profile outlives the jobs that had it."""
        return self.profile_reuse and self.dynamic_jobs


def check_inputs(
    platform: Platform, workloads: Sequence[Workload], events: Sequence[MachineEvent], options: EngineOptions
) -> None:
    """Refuse what cannot be simulated.

    Raises:
        ConfigError: if a host has no speed, or no power where energy is simulated; if two workloads have the same name;
            if an external event is of unknown type.
    """
    kinds: dict[Any, Host] = {}  # the first host of each
    for host in (*platform.hosts, *platform.storage):
        kinds.setdefault((host.pstates, host.sleep, host.initial_pstate, host.has_power), host)
    for host in kinds.values():
        who = f"{platform.path or 'platform'}: host {host.name!r}"
        if options.energy and not host.has_power:
            raise ConfigError(f"{who} does not say what it draws; add wattage_per_state or leave energy out")
        for pstate in range(len(host.pstates)) if options.energy else [host.initial_pstate]:
            if pstate not in host.sleep_pstates and host.pstates[pstate].speed <= 0:
                raise ConfigError(f"{who} has no speed in pstate {pstate}; give it one above 0")
    names = [workload.name for workload in workloads]
    if len(set(names)) < len(names):
        raise ConfigError(f"workloads {', '.join(names)}: two have the same name; give each its own")
    for event in events:
        if event.type not in (*_EVENT_ORDER, GENERIC) and not options.forward_unknown_events:
            raise ConfigError(f"external event of unknown type {event.type!r}: forward unknown events, or leave it out")


def events_in_order(events: Sequence[MachineEvent]) -> list[MachineEvent]:
    """Batsim's order of external events: by time, at one time those that bring hosts back first."""
    return sorted(events, key=lambda event: (event.timestamp, _EVENT_ORDER.get(event.type, 2)))


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
    def jobs(self) -> Sequence[str]: ...  # ids of the jobs that it computes
    @property
    def pstate(self) -> int: ...


class HostNow(NamedTuple):
    """The same as a tuple."""

    facts: Host
    state: HostState
    jobs: Sequence[str]
    pstate: int


def phase_refusal(job_id: str, verb: str, phase: JobPhase) -> str:
    """Why a job cannot start or be rejected; empty if it can."""
    return "" if phase is JobPhase.SUBMITTED else f"{job_id} cannot {verb}: it is {phase.value}"


def size_refusal(job_id: str, size: int, moldable: bool, given: int, what: str = "hosts") -> str:
    """Why a job cannot have so many hosts or executors; empty if it can."""
    return "" if given == size or moldable else f"{job_id} needs {size} {what}, {given} given"


def start_refusal(job_id: str, alloc: str, hosts: Sequence[AnyHost], options: EngineOptions) -> str:
    """Why a job cannot start on these hosts, which were given as `alloc`; empty if it can."""
    able = (HostState.IDLE, HostState.COMPUTING) if options.shares_hosts else (HostState.IDLE,)
    for host in hosts:
        if host.jobs and not options.shares_hosts:
            reason = f"computes {host.jobs[0]}"
        elif host.state not in able:
            reason = f"is {_name(host.state)}"
        elif options.energy and not host.facts.is_computing_pstate(host.pstate):
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
    if host.jobs:
        return f"it computes {host.jobs[0]}"
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
