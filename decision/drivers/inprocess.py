"""An engine and an agent in one process, through the protocol's own messages."""

from decision.model.errors import PolicyError, RemoteProtocolError
from decision.model.record import RunRecord
from decision.protocol import Connection, Role

from .zmq_loop import Decider, Engine


def converse(engine: Engine, agent: Decider) -> RunRecord:
    """Simulate with the agent's decisions.

    Raises:
        PolicyError: if the agent decides something impossible.
    """
    connection = Connection(Role.BATSIM)
    while (question := engine.ask()) is not None:
        reply = agent.handle(connection.send(question))
        try:
            engine.answer(connection.receive(reply))
        except RemoteProtocolError as error:  # our own agent is no peer: what it says is the policy's doing
            raise PolicyError(f"t={question.now:g} s: {error}") from None
    return engine.record()
