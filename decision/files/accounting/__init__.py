"""Logs of batch systems: accounting records made into jobs, and each record accounted for.

Design
------
Each format has a reader that gives columns of the records that ran and counts the others by reason (`records`);
`assemble` makes a workload of them. Files are read a part at a time: a dump of 10 GB never stands in memory.

Rejected: one object per record, which takes ten times the memory and the time; pandas, for the same reason and because
its columns have one type each, while a broken record has another; pyslurm, which needs libslurm and a cluster.
"""

from .records import REASONS, Account, Clock, LeftOut, Records
from .sacct import read_sacct

__all__ = ["REASONS", "Account", "Clock", "LeftOut", "Records", "read_sacct"]
