"""What learned schedulers see and do: from state to observation, from action to plan.

Design
------
Training, the embedded engine and the process behind Batsim's messages run the same kernels: `cycles` says when a
scheduler looks, `choices` what its choice does, `observe` what it sees. DBF, RLScheduler and SchedInspector differ in
the last two alone. An environment calls them one step at a time,
`CyclePolicy` a whole decision at a time, so that both make the same schedule. `Encoder` writes down which observation
it is, with a version that a checkpoint keeps.

What a decision has started so far is kept beside the state (`Cycles`), because only transitions write the state, and
the decision is carried out at its end. Remaining times per core are kept as the times when they end, so that a step
writes an observation in one pass and nothing is subtracted from step to step.

Rejected: observations computed from `ClusterView` in Python (200 times slower); one cycle per completion where jobs end
together (Batsim tells of them at once, and the second would see what the first saw); a Fwd that is refused on an idle
cluster (the paper has no such rule: the mask says so, and the choice stands).
"""

from .encoder import Encoder, make_encoder, read_encoder
from .policy import Choose, CyclePolicy

__all__ = ["Choose", "CyclePolicy", "Encoder", "make_encoder", "read_encoder"]
