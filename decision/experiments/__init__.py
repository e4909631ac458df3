"""Named experiments: results that were published or recorded, and what we get in their place.

Design
------
An experiment is a module with ``run(data)``, which takes the folder that its inputs are in and returns an `Outcome`:
tables and what they say. It draws and prints nothing, so that a test holds its numbers as the command shows them. The
inputs are other people's data and are not shipped. Rejected: scripts beside the package, which nothing would hold to
the numbers in their comments.
"""

from .registry import EXPERIMENTS, Experiment, Outcome, Table, find_experiment

__all__ = ["EXPERIMENTS", "Experiment", "Outcome", "Table", "find_experiment"]
