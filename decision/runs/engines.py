"""Engines by name: which class simulates, which kernel a run compiles, and the conversation in one process."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from decision.analysis.recorded import RECORDED
from decision.batsim.roles import Responder, Simulator
from decision.compiling.jit import is_warm
from decision.engine.embedded import EmbeddedEngine
from decision.engine.kernels import server
from decision.engine.options import EngineOptions
from decision.model.errors import DeadlockError, PolicyError, RemoteProtocolError, StuckError
from decision.model.platform import Platform
from decision.model.record import RunRecord
from decision.model.trace import without_records
from decision.model.workload import MachineEvent, Workload
from decision.policies import find_agent, find_policy
from decision.policies.around import entries_of
from decision.policies.prepared import ask_and_check
from decision.protocol import Connection, Role
from decision.simulation.simulate import simulate_episode

from . import Engine

if TYPE_CHECKING:
    from decision.engine.reference.engine import ReferenceEngine


def make_engine(
    engine: Engine,
    platform: Platform,
    workloads: Sequence[Workload],
    events: Sequence[MachineEvent],
    options: EngineOptions,
) -> "EmbeddedEngine | ReferenceEngine":
    """One of our engines, ready to simulate.

    Args:
        engine: EMBEDDED or REFERENCE.
        platform: the hosts.
        workloads: the jobs.
        events: external events, in order of time.
        options: what Batsim's command line would say.

    Raises:
        ConfigError: if the inputs do not fit together.
    """
    made = platform, without_records(workloads), events, options
    if engine is Engine.EMBEDDED:
        return EmbeddedEngine(*made)
    from decision.engine.reference.engine import ReferenceEngine

    return ReferenceEngine(*made)


@contextmanager
def explained(agent: Responder) -> Iterator[None]:
    """Where a simulation cannot go on, say what waits and why, which only the decision process knows.

    Raises:
        DeadlockError: in the words of the embedded engine, where the agent has a policy of ours.
    """
    try:
        yield
    except (DeadlockError, StuckError):
        from decision.batsim.agent import Agent

        if not isinstance(agent, Agent):
            raise
        raise agent.deadlock() from None


def engine_that_starts_at_once() -> Engine:
    """The compiled engine if it is compiled on this machine, and else its equal in plain Python."""
    return Engine.EMBEDDED if is_warm(server.engine) else Engine.REFERENCE


def compiled_kernels(engine: Engine, policy: str, settings: dict[str, str]) -> list[Callable[..., Any]]:
    """The outermost compiled functions of a run, which `decision.compiling.jit.is_warm` can check.

    Raises:
        ConfigError: if the policy is unknown.
    """
    if policy == RECORDED:
        return []
    if find_agent(policy, settings) is not None:
        return [server.engine]
    loop = [simulate_episode, server.engine] if engine is Engine.EMBEDDED else [ask_and_check]
    return [*loop, *entries_of(find_policy(policy, settings))]


def simulate_by_messages(engine: Simulator, agent: Responder) -> RunRecord:
    """Simulate with the agent's decisions, through the protocol's own messages in one process.

    Raises:
        PolicyError: if the agent decides something impossible.
    """
    connection = Connection(Role.BATSIM)
    while (question := engine.ask()) is not None:
        reply = agent.handle(connection.send(question))
        try:
            engine.answer(connection.receive(reply))
        except RemoteProtocolError as error:  # our own agent is not a peer: its faults are the policy's
            raise PolicyError(f"t={question.now:g} s: {error}") from None
    return engine.record()
