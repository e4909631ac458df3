"""Named experiments: results that were published or recorded, and what we get in their place.

Design
------
An experiment is a module with ``run(data)``, which takes the folder that its inputs are in and returns an `Outcome`:
tables and what they say. It draws and prints nothing, so that a test holds its numbers as the command shows them. The
inputs are other people's data and are not shipped. An experiment of many parts takes `Means` too: its parts are done
side by side, and those that are finished are kept. Rejected: scripts beside the package, which nothing would hold to
the numbers in their comments. Where a published program does something else than its paper says, its rules are
simulated here (`rlscheduler_rules`); rejected: options of the engine for the sake of somebody's mistakes.
"""

from .registry import EXPERIMENTS, Experiment, Means, Outcome, Table, find_experiment

__all__ = ["EXPERIMENTS", "Experiment", "Means", "Outcome", "Table", "find_experiment"]
