"""pybatsim's own schedulers, unmodified, on our engines: in our process, and in pybatsim's own over a socket."""

import csv
import importlib
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from helpers.golden import ROOT, SCHEDULES, SESSIONS

from decision.batsim.pybatsim import PybatsimAgent
from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.reference.engine import ReferenceEngine
from decision.engine.rules import EngineOptions
from decision.experiments.run import simulate_by_messages
from decision.files import load_platform, load_workload
from decision.model.errors import DecisionError, PolicyError
from decision.model.hosts import parse_hosts
from decision.model.platform import Host, Platform, PowerState, SleepState
from decision.model.record import RunRecord
from decision.model.workload import Delay, Job, MachineEvent, Workload

pytest.importorskip("batsim.batsim", reason="pybatsim 3.2.1 is not installed")

FIRST_FIT = f"pybatsim:{Path(__file__).parents[1] / 'helpers' / 'pybatsim_schedulers.py'}:FirstFit"
EASY = ("easyBackfill", "EasyBackfill")
FILLER = ("fillerSched", "FillerSched")
DECIDING = 0.1  # seconds; FillerSched takes 5 ms of simulated time for each event
PATIENCE = 300  # seconds for a process to end; a first run compiles


class Ran(NamedTuple):
    """One job of a finished run."""

    id: str
    submit: float  # seconds
    size: int
    start: float  # seconds
    end: float  # seconds
    hosts: frozenset[int]


# --- Three ways to run a scheduler of pybatsim's -------------------------------------------------------------


def in_process(engine: type[ReferenceEngine | EmbeddedEngine], scheduler: tuple[str, str], folder: Path) -> list[Ran]:
    platform = load_platform(folder / "platform.xml")
    workload = load_workload(folder / "workload0.json", keep_source=True)
    agent = PybatsimAgent(f"pybatsim:schedulers.{scheduler[0]}:{scheduler[1]}")
    return jobs_of(simulate_by_messages(engine(platform, [workload]), agent))


def on_reference(scheduler: tuple[str, str], folder: Path, tmp_path: Path) -> list[Ran]:
    return in_process(ReferenceEngine, scheduler, folder)


def on_embedded(scheduler: tuple[str, str], folder: Path, tmp_path: Path) -> list[Ran]:
    return in_process(EmbeddedEngine, scheduler, folder)


def over_a_socket(scheduler: tuple[str, str], folder: Path, tmp_path: Path) -> list[Ran]:
    """pybatsim's own command, and ``decision batsim`` in Batsim's place."""
    port = free_port()
    launcher = [sys.executable, "-m", "batsim.cmds.launcher", scheduler[0]]
    launcher += ["-s", f"tcp://127.0.0.1:{port}", "-t", str(PATIENCE * 1000), "-v", "warning"]
    batsim = [sys.executable, "-m", "decision", "batsim", "-p", "platform.xml", "-w", "workload0.json"]
    batsim += ["-s", f"tcp://localhost:{port}", "-e", str(tmp_path / "out"), "-q"]
    with (tmp_path / "pybatsim.log").open("w") as log:
        process = subprocess.Popen(launcher, stdout=log, stderr=subprocess.STDOUT)
        try:
            simulated = subprocess.run(batsim, cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
            assert simulated.returncode == 0, simulated.stderr
            assert process.wait(PATIENCE) == 0, (tmp_path / "pybatsim.log").read_text()[-2000:]
        finally:
            process.kill()
            process.wait()
    return jobs_in(tmp_path / "out_jobs.csv")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def jobs_of(record: RunRecord) -> list[Ran]:
    jobs = record.jobs
    columns = (jobs.id, jobs.submit_time, jobs.size, jobs.start_time, jobs.start_time + jobs.runtime, jobs.allocation)
    return sorted(Ran(i, s, n, a, e, frozenset(parse_hosts(h))) for i, s, n, a, e, h in zip(*columns, strict=True))


def jobs_in(file: Path) -> list[Ran]:
    with file.open() as lines:
        return sorted(
            Ran(
                f"{row['workload_name']}!{row['job_id']}",
                float(row["submission_time"]),
                int(row["requested_number_of_resources"]),
                float(row["starting_time"]),
                float(row["finish_time"]),
                frozenset(parse_hosts(row["allocated_resources"])),
            )
            for row in csv.DictReader(lines)
        )


WAYS: Sequence[Callable[[tuple[str, str], Path, Path], list[Ran]]] = (on_reference, on_embedded, over_a_socket)


# --- Rules ---------------------------------------------------------------------------------------------------


def check_schedule(jobs: list[Ran], folder: Path) -> None:
    """Every job ran once it was there, on as many hosts as it asked for, and no host ran two."""
    assert [job.id for job in jobs] == sorted(job.id for job in load_workload(folder / "workload0.json").jobs)
    assert all(job.start >= job.submit and len(job.hosts) == job.size for job in jobs)
    for one, other in combinations(jobs, 2):
        apart = one.end <= other.start + 1e-6 or other.end <= one.start + 1e-6
        assert apart or not one.hosts & other.hosts, (one, other)


def check_greedy(jobs: list[Ran], nb_hosts: int) -> None:
    """No job waits for longer than deciding takes while as many hosts as it wants are free."""
    times = sorted({time for job in jobs for time in (job.submit, job.start, job.end)})
    for begin, end in pairwise(times):
        if end - begin > DECIDING:
            middle = (begin + end) / 2
            free = nb_hosts - sum(job.size for job in jobs if job.start <= middle < job.end)
            assert not [job for job in jobs if job.submit < middle < job.start and job.size <= free], middle


@pytest.mark.parametrize("way", WAYS)
def test_filler_sched_starts_whatever_fits(way, tmp_path: Path) -> None:
    jobs = way(FILLER, SESSIONS / "kill", tmp_path)
    check_schedule(jobs, SESSIONS / "kill")
    check_greedy(jobs, nb_hosts=8)
    assert max(job.start - job.submit for job in jobs) > 60  # there was something to decide


@pytest.mark.parametrize("way", WAYS)
def test_easy_backfill_runs_jobs_on_contiguous_hosts(way, tmp_path: Path) -> None:
    jobs = way(EASY, SESSIONS / "kill", tmp_path)
    check_schedule(jobs, SESSIONS / "kill")
    assert all(max(job.hosts) - min(job.hosts) == job.size - 1 for job in jobs)


def test_easy_backfill_decides_the_same_in_our_process_as_in_pybatsims(tmp_path: Path) -> None:
    *ours, theirs = (way(EASY, SESSIONS / "kill", tmp_path) for way in WAYS)
    for jobs in ours:
        assert [(job.id, job.hosts) for job in jobs] == [(job.id, job.hosts) for job in theirs]
        assert [job.start for job in jobs] == pytest.approx([job.start for job in theirs], abs=1e-6)


@pytest.mark.parametrize(("truth", "options"), [("fcfs", {"fcfs": "true"}), ("filler", {})])
@pytest.mark.parametrize("case", ["seed1_32hosts_300jobs", "seed1_128hosts_400jobs"])
def test_first_fit_on_pybatsim_starts_each_job_when_batsched_did(
    case: str, truth: str, options: dict[str, str]
) -> None:
    folder = SCHEDULES / case
    engine = ReferenceEngine(load_platform(folder / "platform.xml"), [load_workload(folder / "workload.json")])
    jobs = jobs_of(simulate_by_messages(engine, PybatsimAgent(FIRST_FIT, options)))
    recorded = jobs_in(folder / f"{truth}_jobs.csv")
    assert [job.id for job in jobs] == [job.id for job in recorded]
    assert [job.start for job in jobs] == pytest.approx([job.start for job in recorded], abs=1e-6)


# --- Known answers -------------------------------------------------------------------------------------------


Toy = Sequence[tuple[float, int, float, float]]  # of each job: submission, hosts, runtime, walltime


def simulate(agent: PybatsimAgent, jobs: Toy, *events: MachineEvent, engine: Any = ReferenceEngine) -> dict[str, float]:
    """Start times on four hosts, by the job's position."""
    record = simulate_by_messages(engine(platform_of(4), [workload_of(jobs)], events, EngineOptions()), agent)
    return {job.id.partition("!")[2]: job.start for job in jobs_of(record)}


def platform_of(hosts: int) -> Platform:
    return Platform(hosts=tuple(Host(id=i, name=f"h{i}", pstates=(PowerState(speed=1e9),)) for i in range(hosts)))


def hosts_of_six_pstates() -> Platform:
    """As FcfsSchedSleep takes them: three speeds, sleep, and two that model the switches."""
    speeds = (3e9, 2e9, 1e9, 1e-3, 0.5, 0.25)
    pstates = tuple(PowerState(speed, 90.0, 90.0, 180.0) for speed in speeds)
    sleep = (SleepState(pstate=3, switch_off=4, switch_on=5),)
    hosts = (Host(id=i, name=f"h{i}", pstates=pstates, sleep=sleep, has_power=True) for i in range(4))
    return Platform(hosts=tuple(hosts))


def workload_of(jobs: Toy) -> Workload:
    listed = [
        Job(id=f"w0!{i}", submit_time=submit, size=size, walltime=walltime, profile=f"p{i}")
        for i, (submit, size, _, walltime) in enumerate(jobs)
    ]
    profiles = {f"p{i}": Delay(runtime) for i, (_, _, runtime, _) in enumerate(jobs)}
    return Workload(name="w0", jobs=listed, profiles=profiles, nb_res=4)


# pybatsim's second interface cannot start a job at time 0
TOY = ((1.0, 3, 9.0, 10.0), (2.0, 4, 9.0, 10.0), (3.0, 1, 15.0, 20.0), (4.0, 1, 5.0, 6.0))


def test_easy_backfills_only_what_ends_before_the_head_job_may_start() -> None:
    agent = PybatsimAgent("pybatsim:schedulers.easyBackfill:EasyBackfill")
    assert simulate(agent, TOY) == pytest.approx({"0": 1, "1": 10, "2": 19, "3": 4})


@pytest.mark.parametrize("engine", [ReferenceEngine, EmbeddedEngine])
def test_a_job_waits_for_machines_that_external_events_took_away(engine: Any) -> None:
    agent = PybatsimAgent("pybatsim:schedulers.fillerSchedWithEvents:FillerSchedWithEvents")
    gone = MachineEvent(timestamp=2.0, type="machine_unavailable", hosts=(0, 1, 2))
    back = MachineEvent(timestamp=30.0, type="machine_available", hosts=(0, 1, 2))
    starts = simulate(agent, ((3.0, 2, 5.0, 9.0), (4.0, 1, 5.0, 9.0)), gone, back, engine=engine)
    assert starts == pytest.approx({"0": 30, "1": 4}, abs=DECIDING)


@pytest.mark.parametrize(
    ("scheduler", "starts"),
    [
        ("schedFcfs:SchedFcfs", {"0": 1, "1": 10, "2": 19, "3": 19}),
        ("schedFiller:SchedFiller", {"0": 1, "1": 18, "2": 3, "3": 10}),
        ("schedEasySjfBackfill:SchedEasySjfBackfill", {"0": 1, "1": 10, "2": 19, "3": 4}),
        ("schedSendRecv:SchedSendRecv", {"0": 1, "1": 18, "2": 3, "3": 10}),
    ],
)
def test_schedulers_of_the_second_interface_run(
    scheduler: str, starts: dict[str, float], tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(sys, "stderr", (tmp_path / "log").open("w"))  # where they log
    agent = PybatsimAgent(f"pybatsim:schedulers.{scheduler}", {"export-prefix": str(tmp_path / "out")})
    assert simulate(agent, TOY) == pytest.approx(starts)


def test_a_scheduler_that_shares_hosts_is_refused() -> None:
    agent = PybatsimAgent("pybatsim:schedulers.randomSched:RandomSched")  # it draws hosts, free or not
    with pytest.raises(PolicyError, match=r"w0!1 is to start on host \d, where w0!0 runs"):
        simulate(agent, TOY)


# --- The guide's table ---------------------------------------------------------------------------------------


GUIDE = ROOT / "docs" / "guide" / "pybatsim.md"
ENDS = {  # schedulers that end, or are ended, whatever they are given: with what words
    "randomSched:RandomSched": "is to start on host",
    "fcfsSchedSleep:FcfsSchedSleep": "Switched to an unhandled pstate",
    "schedBebida:SchedBebida": "variant",
}
TABLE = re.findall(r"^\| `(\w+:\w+)` \|(.*?)\|(.*?)\|$", GUIDE.read_text(), re.MULTILINE)


def test_the_guide_lists_all_of_pybatsims_own_schedulers() -> None:
    folder = Path(next(iter(importlib.import_module("schedulers").__path__)))
    listed = {name.partition(":")[0] for name, _, _ in TABLE}
    assert listed == {file.stem for file in folder.glob("*[sS]ched*.py")} | {"easyBackfill"}


@pytest.mark.parametrize(("name", "needs"), [(name, needs) for name, needs, _ in TABLE])
def test_the_guide_says_what_pybatsims_own_schedulers_need(
    name: str, needs: str, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(sys, "stderr", (tmp_path / "log").open("w"))
    monkeypatch.chdir(tmp_path)

    def run(first: float) -> dict[str, float]:
        sleeps, work = "-E" in needs, workload_of(((first, *TOY[0][1:]), *TOY[1:]))
        hosts = hosts_of_six_pstates() if sleeps else platform_of(4)
        engine = EmbeddedEngine(hosts, [work], [], EngineOptions(energy=sleeps))
        agent = PybatsimAgent(f"pybatsim:schedulers.{name}", {"export-prefix": str(tmp_path / "out")})
        return {job.id: job.start for job in jobs_of(simulate_by_messages(engine, agent))}

    if name in ENDS:
        with pytest.raises(DecisionError, match=ENDS[name]):
            run(1.0)
        return
    assert len(run(1.0)) == len(TOY)
    if "no job at 0 s" in needs:
        with pytest.raises(PolicyError, match=r"Invalid start time .*alloc.py:35"):
            run(0.0)
    else:
        assert len(run(0.0)) == len(TOY)
