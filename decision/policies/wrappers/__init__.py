"""What stands around another policy, any one: a guard (`guard`), predicted run times (`prediction`), and a supply of
power with a cap, a battery, deadlines and failures (`supply`).

Design
------
What is around a policy is a compiled policy itself: it has an entry, which asks the policy in it (`ask_inner`) and
changes what that one sees or plans, and a memory of its own. So it stands around any other, compiled or in Python, in
any order, and is asked in one way everywhere: in the compiled loop, under messages, in environments and from Python.
What it changes of the needs of the policy in it, it says by `traits`.

To add one, subclass `AroundPolicy` (`base`): set `entry`, override `memory_for`. `tests/helpers/quiet_hours.py` is a
whole one: no job starts between two and four o'clock.

Rejected: two hooks, before and after, which the loop calls: each would have to say what happens where the policy is not
asked, or is asked about another state. A twin of each in Python, for callers that are not compiled: two that must do
the same, where one address serves both.
"""

from .base import AroundPolicy, ask_inner, entries_of, innermost, layers, own_memory

__all__ = ["AroundPolicy", "ask_inner", "entries_of", "innermost", "layers", "own_memory"]
