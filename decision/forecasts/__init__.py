"""When jobs that wait will start: many futures of a cluster from one moment on, and what they say.

Design
------
What is known at a moment is a `history.KnownJobs`: jobs that run and since when, jobs that wait, and what has
ended before. `history.RunTimes` draws how long jobs last, from ended jobs alike and given how long they already ran;
`history.Arrivals` draws who comes later, from its weeks. A future is one simulation with such draws: in the
embedded engine under any policy (`engine`), or in the model of Slurm (`slurm`). `forecast` makes quantiles of many,
`answer` says what they mean for each job, and `judge` compares forecasts with what happened. `log` and `cluster` begin
with a log or with a queue of Slurm.

Random numbers belong to jobs, by name, and to the number of the future: so two forecasts with one change between them
differ by that change alone. The share of luck that jobs alike have in common is kept in common, because the jobs of one
study are all short or all long; drawn apart, their sum would look surer than it is.

Futures are no truth: the model of the scheduler is not exact, and users change their ways. So `calibration` learns from
forecasts of moments that have passed, never of those that are judged, how far off they were; mixes them with the waits
of like jobs, with what happened in like queues and with the errors of like forecasts (`like_jobs` has what these need),
each by what it lost; and makes intervals as wide as their misses ask for.

Rejected: one regression of waits on the queue's features. It cannot say what another request would have waited, and it
needs thousands of jobs. It is compared with (`judge`), as are the others that clusters use.
"""
