"""What Batsim's own command-line options say to an engine."""

import msgspec


class EngineOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a simulation, under the meaning that Batsim 4 gives them."""

    energy: bool = False  # -E: pstates, switches and energy are simulated
    dynamic_jobs: bool = False  # --enable-dynamic-jobs: the decision process may register jobs
    acknowledge_dynamic_jobs: bool = False  # --acknowledge-dynamic-jobs: it is told of them as of any job
    profile_reuse: bool = False  # --enable-profile-reuse
    forward_profiles: bool = False  # --forward-profiles-on-submission
    forward_unknown_events: bool = False  # --forward-unknown-events
    sched_config: str = ""  # --sched-cfg
    trace: bool = True  # keep the host-state table (--disable-machine-state-tracing turns it off)
