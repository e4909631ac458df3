"""When jobs that wait will start: many futures of a cluster from one moment on, and what they say.

Design
------
A `Moment` is what is known at a time: jobs that run and for how long they have, jobs that wait, and what has ended
before (`history`). `RunTimes` draws how long jobs last, from ended jobs alike and given how long they already ran;
`Arrivals` draws who comes later, from the history's own weeks. A future is one simulation with such draws: in the
embedded engine under any policy (`engine`), or in the model of Slurm (`slurm`). `forecast` makes quantiles of many, and
`judge` compares forecasts with what happened.

Random numbers belong to jobs, by name, and to the number of the future: so two forecasts with one change between them
differ by that change alone. The share of luck that jobs alike have in common is kept in common, because the jobs of one
study are all short or all long; drawn apart, their sum would look surer than it is.

Futures are no truth: the model of the scheduler is not exact, and users change their ways. What the futures say is
therefore widened by what earlier forecasts of the same log missed (`calibration`), which are made at moments that have
passed and never at the moments that are judged.

Rejected: one regression of waits on the queue's features. It cannot say what another request would have waited, and it
needs thousands of jobs. It is compared with (`judge`), as are the others that clusters use.
"""
