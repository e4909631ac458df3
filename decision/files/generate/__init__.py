"""Generated inputs: platforms and workloads from a seed, as types of the model. Nothing here reads or writes files.

`lublin` is a published model of whole logs, `paper_workloads` are the workloads of papers and `grid5000_days` those of
one more; all use `jobs`, which makes a workload of columns, and a week for demonstrations. `grid5000` are facts of
clusters; `platforms` makes platforms of them, or of hosts in a fat-tree, torus or dragonfly. `events` are power that
comes and goes, and machines that do.

Design
------
Generators take a `numpy.random.Generator` and draw whole columns: a hundred thousand jobs take a tenth of a second.
They make delay profiles; `as_tasks` turns those into computation, so that what jobs do is chosen in one place.
Walltimes come from the generator where a paper specifies them, and otherwise from `decision.policies.runtimes`.

`grid5000` is a table of published facts, each with its source, apart from `platforms`, which makes hosts of them. What
was never measured is refused, or taken from a named cluster if the user asks for it. Rejected: estimates from similar
processors, which would look like facts in the file.
"""
