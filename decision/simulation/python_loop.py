"""A policy in Python on the engine: the same steps as the compiled loop, one call each per decision."""

import time

from decision.engine import arrays as a
from decision.engine.embedded import EmbeddedEngine
from decision.policies.base import Policy

from .decider import make_decider
from .names import JobNames
from .progress import Progress

STRETCH = 16  # decisions between two signs of life


def run_python(engine: EmbeddedEngine, policy: Policy, progress: Progress | None) -> float:
    """Run to the end; returns the seconds spent in the policy.

    Raises:
        PolicyError: if the policy fails or decides something impossible.
        DeadlockError: if nothing can happen any more.
    """
    decider = make_decider(policy, engine.facts, JobNames(engine))
    engine.sim.flag[a.TIMED_COMMANDS] = 0
    spent, decisions, code = 0.0, 0, a.ASK
    while code == a.ASK:
        began = time.perf_counter()
        decider.decide(engine.state, engine.plan)
        spent += time.perf_counter() - began
        engine.reply(float(engine.state.now[0]))
        code = engine.advance()
        decisions += 1
        if progress and decisions % STRETCH == 0:
            progress(float(engine.state.now[0]), engine.state)
    return spent
