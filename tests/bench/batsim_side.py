"""How fast the decision process is beside a Batsim: from its questions to our replies, through a real socket."""

import csv
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import zmq

from decision.batsim.agent import Agent
from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.rules import EngineOptions
from decision.files import write_platform, write_workload
from decision.protocol import Connection, Role

from .inputs import NB_HOSTS, platform, workload

BOTH = ("batsim", "batsched")
QUIET = ("-q", "-v", "quiet", "--disable-schedule-tracing")
REPEAT = 3


def conversation(swf: Path | None) -> list[bytes]:
    """What Batsim asks when EASY decides: 20,000 messages for 10,000 jobs."""
    engine = EmbeddedEngine(platform(NB_HOSTS), [workload(swf)], (), EngineOptions())
    batsim, agent, questions = Connection(Role.BATSIM), Agent("easy", {}), []
    while (question := engine.ask()) is not None:
        questions.append(batsim.send(question))
        engine.answer(batsim.receive(agent.handle(questions[-1])))
    return questions


def replayed(swf: Path | None) -> list[float]:
    """Seconds that Batsim would wait for `decision serve`, summed over a conversation."""
    questions = conversation(swf)
    return [_played(questions) for _ in range(REPEAT)]


def _played(questions: list[bytes]) -> float:
    endpoint = f"tcp://127.0.0.1:{_free_port()}"
    command = [sys.executable, "-m", "decision", "serve", "--policy", "easy", "--endpoint", endpoint, "--timeout", "60"]
    waited = 0.0
    with zmq.Context() as context, context.socket(zmq.REQ) as end:
        decider = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end.connect(endpoint)
        for at, question in enumerate(questions):
            began = time.perf_counter()
            end.send(question)
            end.recv()
            waited += time.perf_counter() - began if at else 0.0  # the first one waits for a process that starts
        decider.wait(60)
    return waited


def ratio(of: Callable[[dict[str, float]], float]) -> Callable[[Path | None], list[float]]:
    """Times that EASY takes with us, as a multiple of what it takes with batsched's easy_bf_fast; in turn."""

    def measure(swf: Path | None) -> list[float]:
        with tempfile.TemporaryDirectory() as name:
            here = Path(name)
            write_platform(here / "p.xml", platform(NB_HOSTS))
            write_workload(here / "w.json", workload(swf))
            return [of(_with_us(here)) / of(_with_batsched(here)) for _ in range(REPEAT + 1)][1:]

    return measure


def _with_us(here: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "decision", "run", "-p", "p.xml", "-w", "w.json", "--policy", "easy"]
    return _measured([*command, "--engine", "batsim", "-o", "ours"], here, here / "ours")


def _with_batsched(here: Path) -> dict[str, float]:
    (here / "theirs").mkdir(exist_ok=True)
    endpoint = f"tcp://127.0.0.1:{_free_port()}"
    decider = subprocess.Popen(
        ["batsched", "-s", endpoint, "-v", "easy_bf_fast", "--verbosity", "silent"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    command = ["batsim", "-s", endpoint, "-p", "p.xml", "-w", "w.json", "-e", "theirs/out", *QUIET]
    found = _measured(command, here, here / "theirs")
    decider.wait(60)
    return found


def _measured(command: list[str], here: Path, folder: Path) -> dict[str, float]:
    """Wall-clock seconds of a command, and the seconds that Batsim waited for decisions."""
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, cwd=here)
    whole = time.perf_counter() - began
    with (folder / "out_schedule.csv").open() as file:
        return {"whole": whole, "scheduling": float(next(csv.DictReader(file))["scheduling_time"])}


def missing() -> list[str]:
    """The programs that `ratio` needs and that are not on the path."""
    return [program for program in BOTH if shutil.which(program) is None]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
