"""Published or recorded results, and what this package gives for them.

Design
------
Each reproduction is a function that takes its inputs and returns `Findings`: tables and what they say. It prints
nothing, so that a test checks the numbers that the command shows. One of many parts takes `Parts`, too: parts are done
in several processes, finished ones are never repeated, and an interrupted one is resumed. The inputs are other people's
data and are not shipped. Where a published program does something else than its paper says, its rules are simulated
here (`rlscheduler_rules`). Rejected: scripts next to the package, which no test would check against the numbers in
their comments; options of the engine that exist only for somebody's mistake.
"""

from .findings import Findings, Parts, ResultTable

__all__ = ["Findings", "Parts", "ResultTable"]
