"""What a run comes to, and what a workload is like: metrics, figures, Batsim's files read back, pictures.

Design
------
Metrics are computed from a `JobTable`, whether our engine left it or Batsim's ``out_jobs.csv`` was read back, so that
the figures of both mean the same. Each metric's docstring has its formula, because programs that use the same word
(makespan, slowdown, utilization) compute different things; `measures` is the list of them by name.

Comparisons keep to one set of published statistics (`statistics`), so that a verdict means the same here as elsewhere;
rejected: paired tests, which tell more apart but which nobody else reports for such runs.

Pictures are drawn with matplotlib alone, from the step functions of `series`. Rejected: drawing with evalys 4.0.7,
which takes 91 s for the Gantt chart of 10,000 jobs on 256 hosts (ours takes 2 s), fails in part of its plots, and
cannot put several runs on one clock. evalys reads the files that we write. Runs are drawn side by side from `Run`s, so
that one run is the case of a list of one. `report` puts all into one HTML file: its charts are drawn on canvas by a
script of its own, for which 10,000 jobs are 10 ms; rejected: SVG, which needs an element for each piece of a job,
and a plotting library in the page (megabytes, or a network). All pages have one shell and style (`page`).

The page of a comparison is made from ``comparison.json`` alone, which says how it was run, too; so it can be made
where nothing was run. Learning curves are read from what trainings wrote, without torch. Seeds are put together where
their checkpoints say that nothing else differs; rejected: by the names of folders, which would be a guess. Their band
is from the lowest to the highest: quartiles of three or five seeds say less than they seem to.
"""
