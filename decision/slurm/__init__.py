"""What if, for an operator's own Slurm: a model of its scheduler, how well it agrees with a log, and what to change.

Design
------
A case is read once (`case`) from slurm.conf, sacct and what else there is, and kept as one document. `build` makes
arrays of it and of the parameters (`parameters`); `kernels` is the scheduler, compiled; `simulate` is one run. The
scheduler has a clock of its own, in whole seconds as Slurm's, and acts on ends and submissions that it hears of: so
the same code runs a log with recorded run times (`kernels.replay.run_log`) and decides as a policy in decision's
engine (`policy`). Rejected: to agree and sweep through the engine, which knows neither memory nor requeues.

What a log does not say (phases of the periodic threads) is guessed and chosen by agreement (`phases`, `agree`).

The model follows what Slurm 22.05 does, as measured; no line of it is Slurm's.
"""
