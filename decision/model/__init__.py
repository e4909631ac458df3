"""Immutable types: jobs, profiles, workloads, platforms, power states, host sets; errors; and this computer's facts.

Nothing here knows a file format, a protocol or a simulated clock; everything else imports it.

Design
------
What can be asked of a workload (`demand`, `dates`) and made of it (`reshape`) is here, because readers of logs, makers
of workloads, conversions and descriptions must mean the same by a run time, an offered load, a day and a filter.
A workload's jobs are any sequence of `Job`: a list, or the arrays of `columns` that make a job when it is asked for,
which large files are read into. Rejected: columns for all; lists are simpler where jobs are made one by one.

`computer` counts the cores and the memory that this process may use, in containers and batch jobs too, and makes plain
files of compressed, piped and shipped ones. It is here because everything above asks it.
"""
