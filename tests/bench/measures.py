"""The benchmarks. Each returns its figures, one per repetition."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from decision.batsim.agent import Agent
from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.rules import EngineOptions
from decision.files import write_platform, write_swf, write_workload
from decision.model.demand import runtimes
from decision.model.platform import Platform
from decision.model.workload import Workload
from decision.policies.registry import find_policy
from decision.protocol import Connection, Role
from decision.simulation import simulate_on

from .inputs import NB_HOSTS, made, platform, with_users, workload
from .peak import peak_megabytes

REPEAT = 7


def engine_rate(jobs: Workload, nb_hosts: int, policy: str) -> float:
    """Jobs per second of a whole run in the compiled loop, host allocation and host-state trace included."""
    hosts = platform(nb_hosts)
    engine = EmbeddedEngine(hosts, [jobs], (), EngineOptions())
    chosen = find_policy(policy, {})
    chosen.reset(hosts, 0)
    began = time.perf_counter()
    simulate_on(engine, chosen)
    return len(jobs.jobs) / (time.perf_counter() - began)


def engine(policy: str) -> Callable[[Path | None], list[float]]:
    """Jobs per second on the embedded engine, after one run to warm up."""

    def measure(swf: Path | None) -> list[float]:
        jobs = workload(swf)
        return [engine_rate(jobs, NB_HOSTS, policy) for _ in range(REPEAT + 1)][1:]

    return measure


def process(policy: str) -> Callable[[Path | None], list[float]]:
    """Seconds that our decision process takes in all, from a question's bytes to its reply's, summed over a run."""

    def measure(swf: Path | None) -> list[float]:
        jobs = workload(swf)
        return [sum(decision_seconds(jobs, policy)) for _ in range(4)][1:]

    return measure


def decision_seconds(
    jobs: Workload, policy: str, most: int | None = None, servers: Platform | None = None
) -> list[float]:
    """From each question's bytes to its reply's, of the first `most`; on `servers` with energy."""
    options = EngineOptions(energy=servers is not None)
    engine = EmbeddedEngine(servers or platform(NB_HOSTS), [jobs], (), options)
    batsim, agent, spent = Connection(Role.BATSIM), Agent(policy, {}, platform=servers), []
    while len(spent) != most and (question := engine.ask()) is not None:
        data = batsim.send(question)
        began = time.perf_counter()
        reply = agent.handle(data)
        spent.append(time.perf_counter() - began)
        engine.answer(batsim.receive(reply))
    return spent


def predicted_engine(estimate: str) -> Callable[[Path | None], list[float]]:
    """Rate of EASY by predictions over that of EASY by walltimes, in turns, on the same jobs with users."""

    def measure(swf: Path | None) -> list[float]:
        jobs = with_users(swf)
        policies = (f"easy,estimate={estimate}", "easy")
        rates = [[engine_rate(jobs, NB_HOSTS, policy) for policy in policies] for _ in range(REPEAT + 1)]
        return [own / easy for own, easy in rates[1:]]

    return measure


def predicted_process(swf: Path | None) -> list[float]:
    """Seconds of our decision process for EASY by predictions over those for EASY by walltimes, in turns."""
    jobs = with_users(swf)
    policies = ("easy,estimate=last2", "easy")
    seconds = [[sum(decision_seconds(jobs, policy)) for policy in policies] for _ in range(4)]
    return [own / easy for own, easy in seconds[1:]]


def predicted_memory(swf: Path | None) -> list[float]:
    """Megabytes that EASY by the regression takes above EASY: 1,000,000 jobs of 10,000 users, each in a process."""
    own, easy = (
        peak_megabytes([sys.executable, "-m", "bench.predicted", policy])
        for policy in ("easy,estimate=regression", "easy")
    )
    return [own - easy]


def million(swf: Path | None) -> list[float]:
    """Seconds for 1,000,000 jobs on 10,000 hosts under EASY, in a process of its own."""
    command = [sys.executable, "-m", "bench.million"]
    return [float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[0])]


def stream(figure: int) -> Callable[[Path | None], list[float]]:
    """Seconds (0) or megabytes (1) of `decision run` for a log of 1,000,000 jobs, on 10,000 hosts, files included."""

    def measure(swf: Path | None) -> list[float]:
        command = [sys.executable, "-m", "bench.stream"]
        return [float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[figure])]

    return measure


def startup(swf: Path | None) -> list[float]:
    """Wall-clock seconds of `decision run` on the embedded engine with 1,000 jobs, in a warm second process."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        write_platform(here / "p.xml", platform(NB_HOSTS))
        write_workload(here / "w.json", made(1_000, NB_HOSTS, load=0.9, seed=2))
        command = [
            sys.executable,
            "-m",
            "decision",
            "run",
            "-p",
            "p.xml",
            "-w",
            "w.json",
            "--policy",
            "easy",
            "-o",
            "out",
        ]
        return [_wall_seconds(command, here) for _ in range(4)][1:]


def lublin(swf: Path | None) -> list[float]:
    """Wall-clock seconds of `decision workload lublin` for 100,000 jobs with modal estimates."""
    with tempfile.TemporaryDirectory() as name:
        command = [
            sys.executable,
            "-m",
            "decision",
            "workload",
            "lublin",
            "--nb-jobs",
            "100000",
            "--estimates",
            "tsafrir",
        ]
        return [_wall_seconds([*command, "-o", "lublin.json"], Path(name)) for _ in range(REPEAT)]


def from_swf(nb_jobs: int, nb_hosts: int) -> Callable[[Path | None], list[float]]:
    """Wall-clock seconds of `decision workload convert` for a log of so many jobs, in a process of its own."""

    def measure(swf: Path | None) -> list[float]:
        with tempfile.TemporaryDirectory() as name:
            command = _from_swf(swf or _log(Path(name) / "log.swf", nb_jobs, nb_hosts))
            return [_wall_seconds(command, Path(name)) for _ in range(REPEAT)]

    return measure


def from_swf_memory(swf: Path | None) -> list[float]:
    """Megabytes that `decision workload convert` has at most for a log of 100,000 jobs."""
    with tempfile.TemporaryDirectory() as name:
        return [peak_megabytes(_from_swf(swf or _log(Path(name) / "log.swf", 100_000, 1_024)), Path(name))]


def _from_swf(log: Path) -> list[str]:
    return [sys.executable, "-m", "decision", "workload", "convert", str(log.absolute()), "-o", "log.json"]


def _log(path: Path, nb_jobs: int, nb_hosts: int) -> Path:
    jobs = made(nb_jobs, nb_hosts, load=0.9, seed=5)
    write_swf(path, jobs, runtimes(jobs))
    return path


def _wall_seconds(command: list[str], folder: Path) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, cwd=folder)
    return time.perf_counter() - began
