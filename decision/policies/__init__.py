"""Policies: order x backfill x allocation x power, and everything that decides.

Design
------
A policy fills a `Plan` for one instant, after everything that happens at that instant. There are two kinds.

A `ComposedPolicy` has four slots. They are kept apart by what each may decide: order and backfilling say which jobs
start, from counts of hosts alone; allocation says on which hosts, and never whether; power says which idle hosts sleep.
So any order goes with any backfilling, and changing the allocation never changes a waiting time. The slots are integer
codes in a config, and chains of ``if`` in kernels pick the code. Rejected: an entry of its own for each part of each
slot, called by address, which no compiler inlines into the loops over jobs; one compiled policy per combination, which
would compile for hours.

Kernels may remember (`Memory`): FCFS-ordered rules look only at new arrivals while nothing else happened, sorted lists
are kept, reservations move only where hosts came free, and `Kamelot` makes none that decides nothing. Each such saving
is exact, and tests hold it to slow twins that know none of it (`tests/helpers/reference_policies.py`,
``kamelot_reference.py``).

Any other object with `reset` and `decide` is a policy too: `decide` gets a `ClusterView` and writes a `Plan`; or its
decision is compiled and it is a `CompiledPolicy`, as `Kamelot` is. Loops make no difference between the two kinds:
`prepared` is the one protocol through which they ask.

What a job is expected to run comes from the state, and so from the state's walltimes or from the `outlook` of an
`EstimatedPolicy`, which stands around any other policy as a guard does (`wrappers`). What is expected is learned in
`runtimes`; hosts of trees of switches are chosen in `placement`.

What a user writes for a policy is parsed once, into a `PolicySpec` (`traits`), and `find_policy` makes the policy. Who
follows one decision of EASY with a guard reads `composed` (the slots), `guard` and `backfill` (which jobs start), with
`profile` (reservations), `memory` (what is remembered, and how long EASY itself would have let jobs wait), `allocation`
and the state's `plan_arrays` (which hosts). `check_plan` refuses impossible plans before they reach an engine or a
peer.

A job without walltime is taken as endless. Rules that need walltimes to mean anything (`Traits.needs_walltime`: orders
that rank by walltime, EASY, conservative) refuse such jobs through `check_walltime`, which the readers of workloads and
messages call. What else a policy needs and does is in the same record (`traits`).
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decision.state.view import ClusterView, JobView

    from .composed import ComposedPolicy
    from .policy import Plan, Policy
    from .prepared import check_plan
    from .registry import find_agent, find_policy, list_options, list_policies, register_loader

__all__ = [
    "ClusterView",
    "ComposedPolicy",
    "JobView",
    "Plan",
    "Policy",
    "check_plan",
    "find_agent",
    "find_policy",
    "list_options",
    "list_policies",
    "register_loader",
]

_HOMES = {  # of the names: who converts workloads needs `runtimes` alone, and neither kernels nor the registry
    "ClusterView": "decision.state.view",
    "ComposedPolicy": f"{__name__}.composed",
    "JobView": "decision.state.view",
    "Plan": f"{__name__}.policy",
    "Policy": f"{__name__}.policy",
    "check_plan": f"{__name__}.prepared",
    "find_agent": f"{__name__}.registry",
    "find_policy": f"{__name__}.registry",
    "list_options": f"{__name__}.registry",
    "list_policies": f"{__name__}.registry",
    "register_loader": f"{__name__}.registry",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
