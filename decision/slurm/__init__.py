"""What if, for an operator's own Slurm: a model of its scheduler, how well it agrees with a log, and what to change.

Design
------
A case is read once (`case`) from slurm.conf (`conf`), sacct (`records`, `jobs`) and what else there is (`nodes`,
`switches`, `accounts`), and kept in a folder; `keys` says what of it is not simulated. `build` makes arrays of it and
of the parameters, with `limits` and `priority`; `kernels` is the scheduler, compiled; `simulate` is one run, `sweep`
many with other parameters, and `recommend` what to change in slurm.conf. The scheduler has a clock of its own, in
whole seconds as Slurm's, and acts on ends and submissions that it hears of: so the same code runs a log with recorded
run times (`kernels.clock.run_log`) and decides as a policy in decision's engine (`policy`). Rejected: to agree and
sweep through the engine, which knows neither memory nor requeues.

What a log does not say (phases of the periodic threads) is guessed (`simulate`) and chosen by agreement (`agree`).

The model follows what Slurm 22.05 to 26.05 do, as measured; no line of it is Slurm's. Comments name the option of
slurm.conf(5) or the function of Slurm whose rule a line follows.
"""
