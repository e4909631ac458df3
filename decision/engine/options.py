"""What both engines are given, and refuse: Batsim's own options, hosts, workloads and external events."""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from decision.model.errors import ConfigError
from decision.model.platform import Host, Platform
from decision.model.workload import GENERIC, MachineEvent, Workload
from decision.protocol.versions import V4, Version

_EVENT_ORDER = {"machine_available": 0, "machine_unavailable": 1}  # of events at one instant


class EngineOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a simulation, under the meaning that Batsim 4 gives them."""

    energy: bool = False  # -E: pstates, switches and energy are simulated
    dynamic_jobs: bool = False  # --enable-dynamic-jobs: the decision process may register jobs
    acknowledge_dynamic_jobs: bool = False  # --acknowledge-dynamic-jobs: they are reported to it as any job
    profile_reuse: bool = False  # --enable-profile-reuse
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
        _check_host(host, platform.path or "platform", options)
    names = [workload.name for workload in workloads]
    if len(set(names)) < len(names):
        raise ConfigError(f"workloads {', '.join(names)}: two have the same name; give each its own")
    for event in events:
        if event.type not in (*_EVENT_ORDER, GENERIC) and not options.forward_unknown_events:
            raise ConfigError(f"external event of unknown type {event.type!r}: forward unknown events, or leave it out")


def _check_host(host: Host, path: str, options: EngineOptions) -> None:
    if options.energy and not host.has_power:
        reason = "does not say what it draws; add wattage_per_state or leave energy out"
        raise ConfigError(f"{path}: host {host.name!r} {reason}")
    used = range(len(host.pstates)) if options.energy else [host.initial_pstate]
    for pstate in used:
        if pstate not in host.sleep_pstates and host.pstates[pstate].speed <= 0:
            raise ConfigError(f"{path}: host {host.name!r} has no speed in pstate {pstate}; give it one above 0")


def events_in_order(events: Sequence[MachineEvent]) -> list[MachineEvent]:
    """Batsim's order of external events: by time, at one time those that bring hosts back first."""
    return sorted(events, key=lambda event: (event.timestamp, _EVENT_ORDER.get(event.type, 2)))
