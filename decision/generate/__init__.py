"""Made inputs: platforms and workloads from a seed, as facts of the model. Nothing here reads or writes files.

`lublin` is a published model of whole logs, `papers` are the workloads of papers, `week` is for demonstrations; all end
in `jobs`, which makes a workload of columns. `grid5000` are facts of clusters, `clusters` makes platforms of them, and
`topologies` makes platforms of hosts in a fat-tree, torus or dragonfly.

Design
------
Generators take a `numpy.random.Generator` and draw whole columns: a hundred thousand jobs take a tenth of a second.
They make delay profiles; `tasks` turns those into computation, so that what jobs do is chosen in one place. Walltimes
are the generator's where a paper says how users ask, and otherwise those of `decision.estimates`.

`grid5000` is a table of published facts, each with its source, apart from `clusters`, which makes hosts of them. What
nobody measured is refused, or borrowed from a named cluster where the user says so; rejected: estimates from similar
processors, which would look like facts in the file.
"""
