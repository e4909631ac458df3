"""A composed policy on the engine, compiled; Python only lets arrays grow and tells of progress."""

from decision.engine import arrays as a
from decision.engine.embedded import EmbeddedEngine
from decision.policies.composed import ComposedPolicy

from .episode import PAUSE, UNCARRIED, run_episode
from .progress import Progress

STRETCH = 4096  # decisions between two signs of life


def run_compiled(engine: EmbeddedEngine, policy: ComposedPolicy, progress: Progress | None) -> None:
    """Run to the end.

    Raises:
        PolicyError: if the policy decides something impossible.
        DeadlockError: if nothing can happen any more.
    """
    memory = policy.memory_for(engine.state)
    while True:
        code = run_episode(
            engine.state,
            engine.facts,
            engine.truth,
            engine.sim,
            engine.rows,
            engine.plan,
            policy.config,
            memory,
            STRETCH if progress else 2**62,
        )
        if code == UNCARRIED:
            engine.reply(float(engine.state.now[0]))
            code = a.GROW
        if code != PAUSE and engine.resume(code) == a.DONE:
            return
        if progress:
            progress(float(engine.state.now[0]), engine.state)
