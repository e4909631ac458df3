"""An engine in Batsim's place: asks a decision process over ZeroMQ until the simulation ends."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import msgspec
import zmq

from decision.engine.embedded import EmbeddedEngine
from decision.engine.options import EngineOptions
from decision.formats import load_platform, load_workload, write_run
from decision.model.record import RunRecord
from decision.protocol import Connection, Message, Role

from .inputs import read_events, writable_folder
from .signals import stop_on_signals
from .wire import Wire

_ADVICE = "start the decision process first, or give --socket-endpoint where it listens"


class BatsimInputs(msgspec.Struct, frozen=True, kw_only=True):
    """What Batsim's command line says of a simulation."""

    platform: Path
    workloads: tuple[Path, ...] = ()
    events: tuple[Path, ...] = ()
    master: str = "master_host"
    roles: Mapping[str, str] = {}
    mmax: int = 0  # hosts at most, 0 for all
    mmax_workload: bool = False  # hosts at most: the largest nb_res
    options: EngineOptions = EngineOptions()


class Engine(Protocol):
    """Batsim's side of the conversation, without I/O."""

    def ask(self) -> Message | None:
        """The next question; None once the end was answered."""

    def answer(self, message: Message) -> None:
        """Take the reply."""

    def record(self) -> RunRecord:
        """What the run left."""


def play_batsim(engine: Engine, endpoint: str, *, timeout: float = 0.0) -> RunRecord:
    """Connect to `endpoint` and simulate, with the decisions of the process that listens there.

    Raises:
        PeerError: if nobody listens, stops talking or disconnects.
        RemoteProtocolError: if a reply breaks the protocol or asks for the impossible.
        Interrupted: at SIGINT or SIGTERM.
    """
    connection = Connection(Role.BATSIM)
    with (
        stop_on_signals() as stop,
        Wire(zmq.REQ, endpoint, peer="the decision process", timeout=timeout, advice=_ADVICE, stop=stop) as wire,
    ):
        while (question := engine.ask()) is not None:
            wire.send(connection.send(question))
            engine.answer(connection.receive(wire.receive()))
    return engine.record()


def run_standin(inputs: BatsimInputs, endpoint: str, prefix: str, *, timeout: float = 0.0) -> None:
    """Simulate what Batsim's options say, with the decisions of another process, and write ``PREFIX_*.csv``.

    Raises:
        ConfigError: if an input cannot be used or the files cannot be written; and as `play_batsim`.
    """
    writable_folder(Path(prefix).parent)
    workloads = [load_workload(path, f"w{i}", keep_source=True) for i, path in enumerate(inputs.workloads)]
    limits = [inputs.mmax] if inputs.mmax else []
    if inputs.mmax_workload:
        limits += [max((workload.nb_res for workload in workloads), default=1)]
    platform = load_platform(
        inputs.platform,
        energy=inputs.options.energy,
        roles=inputs.roles,
        master=inputs.master,
        mmax=min(limits, default=None),
    )
    events = read_events(inputs.events, inputs.options.forward_unknown_events)
    engine = EmbeddedEngine(platform, workloads, events, inputs.options)
    write_run(prefix, play_batsim(engine, endpoint, timeout=timeout))
