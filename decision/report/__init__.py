"""Results of runs and properties of workloads: metrics, comparisons, learning curves, pictures, HTML reports.

Design
------
Metrics are computed from a `JobTable`, which our engine returns or `decision.files.outputs_read` reads from Batsim's
files, so that the values of both mean the same. Each metric's docstring has its formula, because programs that use the
same word (makespan, slowdown, utilization) compute different things; `metric_list` is the list of them by name.

Comparisons use one set of published statistics (`statistics`), so that a verdict means the same here as elsewhere.
Rejected: paired tests, which separate more policies but which nobody else reports for such runs.

Pictures (`plots`) are drawn with matplotlib alone, from the step functions of `runs`. Rejected: drawing with evalys
4.0.7, which takes 91 s for the Gantt chart of 10,000 jobs on 256 hosts (ours takes 2 s), fails in part of its plots,
and cannot put several runs on one time axis. evalys reads the files that we write. All are drawn in one style, for a
`plots.paper.Paper`, whose width and type size decide how many panels stand in a row; it is ambient, as matplotlib's own
settings are, so that no function between a command and a picture passes it on. Whatever is too small for a pixel still
leaves ink: `reservation_timeline` is a raster that asks what any job of a pixel does. Runs are drawn side by side,
and one run is a list of one. `report` puts everything into one HTML file: its charts are drawn on a canvas by its own
script, for which 10,000 jobs are 10 ms. Rejected: SVG, which needs an element for each piece of a job, and a plotting
library in the page (megabytes, or a network).

The page of a comparison is made from ``comparison.json`` alone, which also says how it was run, so it can be made on
another machine. Learning curves are read from the files of trainings, without torch. Seeds are grouped where their
checkpoints say that nothing else differs; rejected: by the names of folders, which would be a guess. The band of a
curve is from the lowest to the highest seed: quartiles of three or five seeds mean little.
"""
