"""Immutable types: jobs, profiles, workloads, platforms, power states, host sets; errors; and this computer's facts.

Nothing here knows a file format, a protocol or a simulated clock; everything else imports it.

Design
------
`workload`, `platform` (with its `topology`) and `hosts` are what is simulated, `record` and `trace` what came of it or
was recorded, `errors` whose fault something is. `computer` says how many cores and how much memory there are, unpacks
files and finds those that are shipped. `notebook` shows any of it in a cell.

What can be asked of a workload (`demand`, `dates`, `sessions`) and made of it (`reshape`, `filters`) is here, because
readers of logs, makers of workloads, conversions and descriptions must mean the same by a run time, an offered load, a
day and a filter. A workload's jobs are any sequence of `Job`: a list, or the arrays of `columns` that make a job when
it is asked for, which large files are read into. Rejected: columns for all; lists are simpler where jobs are made one
by one.
"""

# What this computer has: processors and memory, files packed or shipped.
#
# `cores` counts the processors and the memory that this process may use, in containers and batch jobs too, and `room`
# refuses what does not fit there. `unpacked` reads packed files, and `shipped` finds platforms and workloads by name.
# `browser` prints pages to PDF.
