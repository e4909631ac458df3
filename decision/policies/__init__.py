"""Policies: order x backfill x allocation x power, and everything that decides.

Design
------
A policy fills a `Plan` for one instant, after everything that happens at that instant. There are two kinds.

A `ComposedPolicy` has four slots. They are kept apart by what each may decide: order and backfilling say which jobs
start, from counts of hosts alone; allocation says on which hosts, and never whether; power says which idle hosts sleep.
So any order goes with any backfilling, and changing the allocation never changes a waiting time. The slots are integer
codes in a config, and chains of ``if`` in kernels pick the code. Rejected: function pointers and first-class
functions, which numba can neither inline nor cache on disk reliably; one compiled loop per combination, which would
compile for hours.

Kernels may remember (`Memory`): FCFS-ordered rules look only at new arrivals while nothing else happened, sorted lists
are kept, reservations move only where hosts came free. Each such saving is exact, and tests hold it to slow twins that
know none of it (`tests/unit/policies/reference_policies.py`).

Any other object with `reset` and `decide` is a policy too (`Kamelot` is one): `decide` gets a `ClusterView` and writes
a `Plan`.
`find_policy` makes policies from names; `check_plan` refuses impossible plans before they reach an engine or a peer;
`check_policy` tries a policy on small made workloads.

A job without walltime is taken as endless. Rules that need walltimes to mean anything (`ComposedPolicy.needs_walltime`:
orders that rank by walltime, EASY, conservative) refuse such jobs through `check_walltime`, which whoever reads
workloads or messages calls.
"""

from decision.state.view import ClusterView, JobView

from .base import Plan, Policy
from .check import check_plan
from .check_policy import check_policy
from .composed import ComposedPolicy
from .presets import CATALOGUE
from .registry import find_policy, register_loader

__all__ = [
    "CATALOGUE",
    "ClusterView",
    "ComposedPolicy",
    "JobView",
    "Plan",
    "Policy",
    "check_plan",
    "check_policy",
    "find_policy",
    "register_loader",
]
