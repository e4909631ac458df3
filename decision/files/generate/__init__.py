"""Generated inputs: platforms and workloads from a seed, as types of the model. Nothing here reads or writes files.

`lublin` is a published model of whole logs, and `paper_workloads` has the workloads of papers; both use `jobs`, which
makes a workload of columns, has a week for demonstrations, and turns delays into computation. `grid5000` are facts of
clusters, and `platforms` makes platforms of them, or of hosts in a fat-tree, torus or dragonfly. `events` are machines
that fail and come back, and power that does.

Design
------
Generators take a `numpy.random.Generator` and draw whole columns: a hundred thousand jobs take a tenth of a second.
They make delay profiles; `jobs.as_tasks` turns those into computation, so that what jobs do is chosen in one place.
Walltimes come from the generator where a paper specifies them, and otherwise from `decision.policies.runtimes`.

`grid5000` is a table of published facts, each with its source, apart from `platforms`, which makes hosts of them. What
was never measured is refused, or taken from a named cluster if the user asks for it. Rejected: estimates from similar
processors, which would look like facts in the file.
"""
