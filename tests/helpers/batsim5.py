"""Our engine as a Batsim 5: built from a recorded session, and in conversation with an agent without sockets."""

import json
import shlex
from pathlib import Path
from typing import Any

import msgspec

from decision.engine.batsim5 import Batsim5Engine
from decision.engine.rules import EngineOptions
from decision.files import load_platform, load_workload
from decision.files.events import load_texts
from decision.model.record import RunRecord
from decision.protocol import Connection, Message, Role, read_recording
from decision.protocol import messages as m
from decision.protocol.versions import V5
from helpers.engine_harness import PRECISION, _close


def build_engine5(folder: Path) -> Batsim5Engine:
    """The engine for a scenario, with the options in its ``command.txt``."""
    words = shlex.split((folder / "command.txt").read_text())
    workloads = [
        msgspec.structs.replace(load_workload(folder / file, f"w{n}", keep_source=True), path=f"/data/{file}")
        for n, file in enumerate(_values(words, "-w"))
    ]
    lists = {f"ee{n}": file for n, file in enumerate(_values(words, "--ee"))}
    events = [event for name, file in lists.items() for event in load_texts(folder / file, name)]
    energy = "--energy-host" in words
    return Batsim5Engine(
        load_platform(folder / "platform.xml", energy=energy, by_numbers=True),
        workloads,
        events,
        EngineOptions(energy=energy, rules=V5),
        lists={name: f"/data/{file}" for name, file in lists.items()},
        facts=m.BatsimFacts("v5.0.0-rc2"),
    )


def _values(words: list[str], option: str) -> list[str]:
    return [words[at + 1] for at, word in enumerate(words) if word == option]


def replay5(engine: Batsim5Engine, session: Path) -> list[str]:
    """Give an engine the recorded decisions; how its questions first differ from Batsim's."""
    entries = list(read_recording(session.read_text().splitlines()))
    connection = Connection(Role.BATSIM, "5")
    connection.send(Message(0.0, (m.Init(0.0, m.InitData(str(entries[0].init))),)))
    engine.greet(connection.receive(entries[1].data).events[0].data.features)
    for number, (question, reply) in enumerate(zip(entries[2::2], entries[3::2], strict=True)):
        said = engine.ask()
        if said is None:
            return [f"the engine ends before question {number}"]
        wanted, found = json.loads(question.data), json.loads(connection.send(said).rstrip(b"\0"))
        for message in (wanted, found):
            _forget_machine(message)
        if not _close(wanted, found, PRECISION, PRECISION):
            return [f"question {number}: Batsim {str(wanted)[:300]}, the engine {str(found)[:300]}"]
        engine.answer(connection.receive(reply.data))
    return [] if engine.ask() is None else ["the engine goes on after Batsim's end"]


def _forget_machine(message: dict[str, Any]) -> None:
    """Leave out what is of the machine on which it was recorded."""
    for event in message["events"]:
        for name in ("batsim_arguments", "batsim_execution_context_json"):
            event["event"].pop(name, None)


def converse5(engine: Batsim5Engine, agent: Any) -> RunRecord:
    """The run of an engine for which an agent decides, through bytes."""
    connection = Connection(Role.BATSIM, "5")

    def tell(message: Message) -> Message:
        return connection.receive(agent.handle(connection.send(message)))

    engine.greet(tell(Message(0.0, (m.Init(0.0, m.InitData("")),))).events[0].data.features)
    while (question := engine.ask()) is not None:
        engine.answer(tell(question))
    return engine.record()


def talk5(engine: Batsim5Engine, script: dict[float, list[Any]], **features: bool) -> list[dict[str, Any]]:
    """What an engine asks a decision process that says what a script has: at a time, or at the next question.

    A number before the commands is the seconds that the reply takes. A third value of a command is by how much it comes
    before the reply's end.
    """
    hello: Any = {f"decision_component_{name}": "x" for name in ("name", "version", "commit")}
    hello |= {"batprotocol_version": "1", "requested_simulation_features": features}
    connection, told, script = Connection(Role.BATSIM, "5"), [], dict(script)
    connection.send(Message(0.0, (m.Init(0.0, m.InitData("")),)))
    greeting = b"\x02\0\0\0" + _reply(0.0, [("EDCHelloEvent", hello)]) + b"\0"
    engine.greet(connection.receive(greeting).events[0].data.features)
    while (question := engine.ask()) is not None:
        told.append(json.loads(connection.send(question).rstrip(b"\0")))
        due = [time for time in sorted(script) if time <= question.now][:1]
        said = [each for time in due for each in script.pop(time)]
        takes = said.pop(0) if said and isinstance(said[0], int | float) else 0
        engine.answer(connection.receive(_reply(question.now + takes, said)))
    return told


def _reply(now: float, said: list[Any]) -> bytes:
    events = [{"timestamp": now - sum(earlier), "event_type": kind, "event": event} for kind, event, *earlier in said]
    return json.dumps({"now": now, "events": events}).encode()
