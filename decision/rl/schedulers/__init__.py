"""Learned schedulers: one module each, with all that is its own.

Design
------
A scheduler is a record (`base.ChoosingScheduler`, or `base.ParametricScheduler` for a compiled policy whose numbers are
learned; `prices` is neither, because it learns what an allocation uses): settings, observation with its table and
version, actions and mask, reward, what begins and ends an episode, networks that fit, metrics, presets, the
environment's id, a line for the catalogue. Environments (`decision.rl.envs`), the trainer and checkpoints
(`decision.rl.learning`), the catalogue, the command line and Gymnasium's registry are loops over the records. To add
one: write a module like `rlscheduler` and a preset, call `register`, and import it below; or name the record in the
entry point group ``decision.schedulers`` of your package. No other line changes.

What a record computes in compiled code are entries (`decision.compiling.entry`) of the interfaces of `base`: BEGIN,
OPEN, ACT, OBSERVE, REWARD, MEASURE, and FOLLOW, which turns recorded schedules into choices. Compiled loops call them
by address, so they are compiled once, and a scheduler from outside of this package costs its own kernels only.
Training, the embedded engine and the process behind Batsim's messages call the same entries: an environment one step at
a time, `ChoosingPolicy` a whole decision at a time, so that both make the same schedule. `base` has the registry of
records; `decision_points` says when a scheduler looks and what it sees then, `window` what two of them see of the
queue. `learned`, `ranking`, `timetable` and `joint` judge by numbers that were evolved: `rollouts` says what would
follow of starts, and which jobs wait for too long.

What a decision has started so far is kept next to the state (`decision_points`), because only transitions write the
state, and the decision is carried out at its end. Remaining times per core are kept as the times when they end, so that
a step writes an observation in one pass and nothing is subtracted from step to step.

Rejected: one struct of settings for all schedulers, most of which mean nothing to most (each has its own, and
checkpoints of the former kind are still read); a chain of ``if kind ==`` in each loop, which each scheduler lengthens;
observations computed from `ClusterView` in Python (200 times slower); one cycle per completion where jobs end together
(Batsim reports them at once, and the second would see what the first saw).
"""

from . import (  # noqa: F401 - each registers its record
    dbf,
    deepscheduling,
    inspector,
    joint,
    launchpad,
    learned,
    packing,
    prices,
    ranking,
    repair,
    rlscheduler,
    timetable,
)
from .base import (
    ChoosingScheduler,
    Encoder,
    Episodes,
    ParametricScheduler,
    Scheduler,
    find_scheduler,
    make_encoder,
    read_encoder,
    records,
    register,
)
from .own import ChoiceView, Environment
from .policy import Choose, ChoosingPolicy

__all__ = [
    "ChoiceView",
    "Choose",
    "ChoosingPolicy",
    "ChoosingScheduler",
    "Encoder",
    "Environment",
    "Episodes",
    "ParametricScheduler",
    "Scheduler",
    "find_scheduler",
    "make_encoder",
    "read_encoder",
    "records",
    "register",
]
