"""The cluster as arrays, and the only functions that change it.

Design
------
`ClusterState` is a NamedTuple of numpy arrays, so that compiled kernels, Python policies and observation
encoders read the same memory. Everything that happens goes through `transitions`: each is a small kernel that
keeps the redundant parts (queue, free bitmap, running list, counters) consistent; `invariants` says what
"consistent" means. The state holds what a scheduler may know and nothing else: jobs get their numbers when they are
submitted, in that order, and true runtimes are elsewhere (`decision.engine.truth`).

Rejected: objects per job and host (60 times slower, and not vectorisable); a structured array (its fields
cannot have different lengths).
"""
