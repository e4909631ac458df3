"""The cluster as arrays, and the only functions that change it.

Design
------
`ClusterState` is a `decision.compiling.bundle.Bundle` of numpy arrays, so that compiled kernels, Python policies and
observation encoders read the same memory. Everything that happens goes through `transitions`, and nothing else writes
(a test holds that): each is a small kernel that keeps the redundant parts (queue, free bitmap, running list, counters)
consistent; `tests/helpers/invariants.py` says what "consistent" means. `plan_arrays` has what may be done (on which
hosts a job may start, to which pstates a host may go, which jobs can be cut) and what is to be done: policies write it,
engines carry it out, and neither knows the other. `view` is the state as policies in Python see it, `bitmap` are sets
of hosts, and `hops` how far apart these are. The state holds what a scheduler may know and nothing else: jobs get their
numbers when they are submitted, in that order, and true runtimes are elsewhere (`decision.engine.truth`).

Rejected: objects per job and host (60 times slower, and not vectorisable); a structured array (its fields cannot have
different lengths).
"""
