"""Made inputs: platforms and workloads from a seed, as facts of the model. Nothing here reads or writes files.

`lublin` is a published model of whole logs, `papers` are the workloads of papers, `week` is for demonstrations; all end
in `jobs`, which makes a workload of columns.

Design
------
Generators take a `numpy.random.Generator` and draw whole columns: a hundred thousand jobs take a tenth of a second.
They make delay profiles; `tasks` turns those into computation, so that what jobs do is chosen in one place. Walltimes
are the generator's where a paper says how users ask, and otherwise those of `decision.estimates`.
"""
