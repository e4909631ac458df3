"""A policy and the embedded engine together: whole runs without any messages.

Design
------
A policy and the engine run in one compiled loop, `simulate.simulate_episode`, which comes up to Python only to let
arrays grow and to show progress. It asks the policy by address (`decision.policies.prepared`), so it is the same loop
for a policy that is compiled and for one in Python. Nobody decides in the middle of an instant: one question, one
decision, as under Batsim; a test asserts that both give the same trace. Rejected: a second loop, in Python, for
policies in Python: it did the same in other words, and was slower.

Jobs that ask for more hosts than there are cannot start: `misfits` rejects them as they come, so that no policy sees
them. Batsim would send them, and our agent rejects them in the same way; results are the same to the byte.

`try_policy` tries a policy on small workloads.
"""

from .check_policy import try_policy
from .simulate import simulate_workloads

__all__ = ["simulate_workloads", "try_policy"]
