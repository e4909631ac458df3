"""Generated inputs: platforms and workloads from a seed, as types of the model. Nothing here reads or writes files.

`lublin` is a published model of whole logs, `papers` are the workloads of papers, `week` is for demonstrations; all use
`jobs`, which makes a workload of columns. `grid5000` are facts of clusters, `clusters` makes platforms of them, and
`topologies` makes platforms of hosts in a fat-tree, torus or dragonfly. `supply` is power that comes and goes, and
`failures` are machines that do.

Design
------
Generators take a `numpy.random.Generator` and draw whole columns: a hundred thousand jobs take a tenth of a second.
They make delay profiles; `tasks` turns those into computation, so that what jobs do is chosen in one place. Walltimes
come from the generator where a paper specifies them, and otherwise from `decision.policies.runtimes`.

`grid5000` is a table of published facts, each with its source, apart from `clusters`, which makes hosts of them. What
was never measured is refused, or taken from a named cluster if the user asks for it. Rejected: estimates from similar
processors, which would look like facts in the file.
"""
