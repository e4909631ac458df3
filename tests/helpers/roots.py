"""Compile, on all cores, the roots that most tests need: run as a program, before several workers begin at once."""

from decision.batsim.follower import ask_now
from decision.compiling.jit import compile_ahead
from decision.engine.kernels.server import engine
from decision.policies.composed import decide_composed
from decision.simulation import simulate_episode

if __name__ == "__main__":
    roots = engine, ask_now, decide_composed, simulate_episode
    compile_ahead(*roots)
    for root in roots:
        _ = root.address
