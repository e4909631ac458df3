"""Logs of batch systems: accounting records made into jobs, and each record accounted for.

Design
------
Each format has a reader (`sacct`, `event_logs`, `tables`) that gives columns of the records that ran, and counts the
others by reason (`records`); `values` reads what their fields say, `assemble` makes jobs of them, and `read` chooses
the reader. `known` are public logs by name. Files are read a part at a time: a dump of 10 GB never stands in memory.

Rejected: one object per record, which takes ten times the memory and the time; pandas, for the same reason and because
its columns have one type each, while a broken record has another; pyslurm, which needs libslurm and a cluster.
"""

from .records import REASONS, Account, LeftOut, Records
from .sacct import read_sacct
from .values import Clock

__all__ = ["REASONS", "Account", "Clock", "LeftOut", "Records", "read_sacct"]
