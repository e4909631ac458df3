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

import numpy as np
import zmq

from decision.batsim.agent import Agent
from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.rules import EngineOptions
from decision.files import write_platform, write_workload
from decision.model.workload import Workload
from decision.protocol import Connection, Role

from .inputs import NB_HOSTS, platform, workload
from .measures import engine_rate

BOTH = ("batsim", "batsched")
QUIET = ("-q", "-v", "quiet", "--disable-schedule-tracing")
REPEAT = 3
PAIRS = 10  # of runs in turn: a ratio of two spreads more than either
_ROOT = Path(__file__).parents[2]
_TAURUS = ["-p", f"{_ROOT}/platforms/taurus.xml", "-w", f"{_ROOT}/workloads/taurus_week.json"], ["-E"]


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
    return [sum(_waits(questions)) for _ in range(REPEAT)]


def turnaround(percentile: float) -> Callable[[Path | None], list[float]]:
    """Microseconds from a question to the reply of `decision serve`, through its socket: a percentile of them."""

    def measure(swf: Path | None) -> list[float]:
        questions = conversation(swf)
        return [1e6 * float(np.percentile(_waits(questions), percentile)) for _ in range(REPEAT)]

    return measure


def _waits(questions: list[bytes]) -> list[float]:
    """Seconds from each question to its reply, but for the first, which waits for a process that starts."""
    endpoint = f"tcp://127.0.0.1:{_free_port()}"
    command = [sys.executable, "-m", "decision", "serve", "--policy", "easy", "--endpoint", endpoint, "--timeout", "60"]
    waits = []
    with zmq.Context() as context, context.socket(zmq.REQ) as end:
        decider = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end.connect(endpoint)
        for question in questions:
            began = time.perf_counter()
            end.send(question)
            end.recv()
            waits.append(time.perf_counter() - began)
        decider.wait(60)
    return waits[1:]


Inputs = tuple[list[str], list[str]]  # the words for a platform and a workload; what Batsim's command has beside them


def ratio(
    of: str, policy: str = "easy", variant: str = "easy_bf_fast", *, energy: bool = False
) -> Callable[[Path | None], list[float]]:
    """Times that a policy takes with us, as a multiple of what batsched's variant takes; in turn, on the same Batsim.

    Args:
        of: which of the times that `_measured` gives.
        policy: ours.
        variant: batsched's.
        energy: measure on a week of taurus, with energy, in place of the log.
    """

    def measure(swf: Path | None) -> list[float]:
        with tempfile.TemporaryDirectory() as name:
            here = Path(name)
            inputs = _TAURUS if energy else _written(here, workload(swf))
            return [
                _with_us(here, policy, inputs)[of] / _with_batsched(here, variant, inputs)[of] for _ in range(PAIRS + 1)
            ][1:]

    return measure


def embedded(swf: Path | None) -> list[float]:
    """Time of a whole run under EASY with Batsim and batsched, as a multiple of the embedded engine's; in turn."""
    jobs = workload(swf)
    engine_rate(jobs, NB_HOSTS, "easy")
    with tempfile.TemporaryDirectory() as name:
        here = Path(name)
        inputs = _written(here, jobs)
        return [
            _with_batsched(here, "easy_bf_fast", inputs)["whole"] * engine_rate(jobs, NB_HOSTS, "easy") / len(jobs.jobs)
            for _ in range(REPEAT)
        ]


def _written(here: Path, jobs: Workload) -> Inputs:
    write_platform(here / "p.xml", platform(NB_HOSTS))
    write_workload(here / "w.json", jobs)
    return ["-p", "p.xml", "-w", "w.json"], []


def _with_us(here: Path, policy: str, inputs: Inputs) -> dict[str, float]:
    files, switches = inputs
    command = [sys.executable, "-m", "decision", "run", *files, *switches, "--policy", policy, "--engine", "batsim"]
    return _measured([*command, "-o", "ours"], here, here / "ours")


def _with_batsched(here: Path, variant: str, inputs: Inputs) -> dict[str, float]:
    files, switches = inputs
    (here / "theirs").mkdir(exist_ok=True)
    endpoint = f"tcp://127.0.0.1:{_free_port()}"
    decider = subprocess.Popen(
        ["batsched", "-s", endpoint, "-v", variant, "--verbosity", "silent"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    command = ["batsim", "-s", endpoint, *files, *switches, "-e", "theirs/out", *QUIET]
    found = _measured(command, here, here / "theirs")
    decider.wait(60)
    return found


def _measured(command: list[str], here: Path, folder: Path) -> dict[str, float]:
    """Wall-clock seconds of a command, ``whole``, and those that Batsim waited for decisions, ``scheduling``."""
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
