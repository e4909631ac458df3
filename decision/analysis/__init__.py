"""What a run comes to, and what a workload is like: metrics, figures, Batsim's files read back, pictures.

Design
------
Metrics are computed from a `JobTable`, whether our engine left it or Batsim's ``out_jobs.csv`` was read back, so that
the figures of both mean the same. Each metric's docstring has its formula, because programs that use the same word
(makespan, slowdown, utilization) compute different things; `measures` is the list of them by name. Pictures are drawn
with matplotlib alone; rejected: drawing with evalys, whose newest release fails in part of its plots. evalys reads the
files that we write.
"""
