"""A policy and the embedded engine together: whole runs without any messages.

Design
------
A composed policy and the engine run in one compiled loop (`episode`), which comes up to Python only to let arrays grow
and to show progress. A policy written in Python runs over the same engine's `advance` and `reply`, one call each per
decision (`python_loop`), and a test asserts that both give the same trace. Neither decides in the middle of an instant:
one question, one decision, as under Batsim.
"""

from .simulate import simulate

__all__ = ["simulate"]
