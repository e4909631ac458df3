"""Runs on a Batsim that we start: whole files or none, and what readers make of a run that failed."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from decision.cli.app import app
from decision.experiments import Engine, Verbosity, run
from decision.experiments.inputs import Inputs, PolicyChoice, load_inputs
from decision.experiments.results import load_runs
from decision.experiments.run import RealBatsim, run_to_folder
from decision.files.outputs_read import read_facts, read_jobs, read_run_record
from decision.model.errors import ConfigError, DecisionError, InputError, PeerError

STANDIN = Path(sys.executable).parent / "decision-batsim"
WRITES_ARGUMENTS = f"""#!{sys.executable}
import subprocess, sys
from pathlib import Path
prefix = sys.argv[sys.argv.index("-e") + 1]
print(*sys.argv[1:], flush=True)
code = subprocess.run(["{STANDIN}", *sys.argv[1:]]).returncode
Path(prefix + "_schedule.trace").write_text("trace")
sys.exit(code)
"""
WRITES_HALF = f"""#!{sys.executable}
import subprocess, sys
from pathlib import Path
jobs = Path(sys.argv[sys.argv.index("-e") + 1] + "_jobs.csv")
subprocess.run(["{STANDIN}", *sys.argv[1:]])
jobs.write_text(jobs.read_text()[:-30])
"""
DIES_HALF_WAY = f"""#!{sys.executable}
import sys
from pathlib import Path
prefix = sys.argv[sys.argv.index("-e") + 1]
Path(prefix + "_jobs.csv").write_text("job_id,workload_name\\n1,w0\\n")
sys.exit("[0.000000] [workload/CRITICAL] no such profile")
"""
CANNOT_GO_ON = f"""#!{sys.executable}
import subprocess, sys
subprocess.run(["{STANDIN}", *sys.argv[1:]], stderr=subprocess.DEVNULL)
print("[50.000000] x.cpp:7: [ker_engine/CRITICAL] Oops! Deadlock detected", flush=True)
"""


@pytest.fixture
def case(root):
    paths = {"platform": root / "platforms" / "toy.xml", "workloads": (root / "workloads" / "toy.json",)}
    return load_inputs(Inputs(**paths))


def executable(path: Path, source: str) -> RealBatsim:
    path.write_text(source)
    path.chmod(0o755)
    return RealBatsim(command=str(path), timeout=60)


def start(case, folder: Path, batsim: RealBatsim) -> None:
    run_to_folder(case, PolicyChoice(policy="easy"), folder, engine=Engine.BATSIM, batsim=batsim)


def test_a_batsim_that_dies_leaves_the_files_of_the_run_before_and_says_that_it_failed(case, tmp_path):
    out = tmp_path / "out"
    run_to_folder(case, PolicyChoice(policy="fcfs"), out)
    before = {file.name: file.read_bytes() for file in out.iterdir()}
    with pytest.raises(PeerError, match="no such profile"):
        start(case, out, executable(tmp_path / "batsim", DIES_HALF_WAY))
    before.pop("run.json")
    assert {name: (out / name).read_bytes() for name in before} == before
    assert {file.name for file in out.iterdir()} == before.keys() | {"batsim.log", "run.json"}
    assert "no such profile" in read_facts(out).reason


def test_every_reader_refuses_a_run_that_failed_until_there_is_a_whole_one(case, tmp_path):
    out = tmp_path / "all" / "out"
    run_to_folder(case, PolicyChoice(policy="fcfs"), out)
    with pytest.raises(PeerError):
        start(case, out, executable(tmp_path / "batsim", DIES_HALF_WAY))
    readers = [
        lambda: read_run_record(out),
        lambda: read_jobs(out / "out"),
        lambda: load_runs([out]),
        lambda: load_runs([tmp_path / "all"]),
    ]
    for read in readers:
        with pytest.raises(InputError, match="the last run in this folder failed"):
            read()
    start(case, out, RealBatsim(command=str(STANDIN), timeout=60))
    for read in readers:
        read()


def test_a_folder_with_nothing_but_a_failed_run_is_refused_for_that(case, tmp_path):
    with pytest.raises(PeerError):
        start(case, tmp_path / "out", executable(tmp_path / "batsim", DIES_HALF_WAY))
    for place in (tmp_path, tmp_path / "out"):
        with pytest.raises(InputError, match="the last run in this folder failed"):
            load_runs([place])


def test_what_an_older_run_wrote_and_this_one_does_not_is_gone(root, case, tmp_path):
    energy = load_inputs(
        Inputs(platform=root / "platforms/taurus.xml", workloads=(root / "workloads/toy.json",), energy=True)
    )
    for engine in (Engine.BATSIM, Engine.REFERENCE):
        out, batsim = tmp_path / engine, RealBatsim(command=str(STANDIN), timeout=60)
        run_to_folder(energy, PolicyChoice(policy="easy"), out, engine=engine, batsim=batsim)
        assert read_run_record(out).energy is not None
        (out / "out_notes.txt").write_text("mine")
        run_to_folder(case, PolicyChoice(policy="easy"), out, engine=engine, batsim=batsim)
        assert read_run_record(out).energy is None
        assert (out / "out_notes.txt").exists()


def test_batsim_is_quiet_and_writes_no_trace_unless_it_is_asked_to(case, tmp_path):
    batsim = executable(tmp_path / "batsim", WRITES_ARGUMENTS)
    start(case, tmp_path / "out", batsim)
    assert " -v quiet --disable-schedule-tracing" in (tmp_path / "out" / "batsim.log").read_text()
    asked = RealBatsim(command=batsim.command, timeout=60, verbosity=Verbosity.INFORMATION, schedule_trace=True)
    start(case, tmp_path / "out", asked)
    told = (tmp_path / "out" / "batsim.log").read_text()
    assert " -v information" in told and "--disable-schedule-tracing" not in told
    assert (tmp_path / "out" / "out_schedule.trace").exists()


def test_the_command_line_passes_both_on(root, tmp_path):
    executable(tmp_path / "batsim", WRITES_ARGUMENTS)
    toy = ["run", "-p", root / "platforms/toy.xml", "-w", root / "workloads/toy.json", "--policy", "easy"]
    real = ["--engine", "batsim", "--batsim", tmp_path / "batsim", "-o", tmp_path / "out"]
    chosen = ["--batsim-verbosity", "debug", "--schedule-trace"]
    result = CliRunner().invoke(app, [str(word) for word in (*toy, *real, *chosen)])
    assert result.exit_code == 0, result.stderr
    assert " -v debug -s" in (tmp_path / "out" / "batsim.log").read_text()


def test_a_job_id_that_batsim_cannot_load_is_refused_by_name_before_it_starts(root, tmp_path):
    job = {"id": "a,b", "subtime": 0, "res": 1, "walltime": 10, "profile": "p"}
    workload = {"nb_res": 1, "jobs": [job], "profiles": {"p": {"type": "delay", "delay": 1}}}
    (tmp_path / "w.json").write_text(json.dumps(workload))
    executable(tmp_path / "batsim", DIES_HALF_WAY)
    arguments = ["-p", root / "platforms/toy.xml", "-w", tmp_path / "w.json", "--policy", "easy", "-o", tmp_path / "o"]
    real = ["--engine", "batsim", "--batsim", tmp_path / "batsim"]
    result = CliRunner().invoke(app, ["run", *map(str, (*arguments, *real))])
    assert result.exit_code == 2
    assert "job 'a,b', field 'id': Batsim cannot load a job whose id contains ','" in result.stderr
    assert not (tmp_path / "o" / "batsim.log").exists()


def test_half_a_file_on_a_full_disk_is_named_for_what_it_is(case, tmp_path, monkeypatch):
    monkeypatch.setattr(run.shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
    with pytest.raises(ConfigError, match="cannot be written \\(the disk is full\\); free space"):
        start(case, tmp_path / "out", executable(tmp_path / "batsim", WRITES_HALF))
    assert not list((tmp_path / "out").glob("out_*"))


def test_a_folder_that_batsim_wrote_into_goes_with_the_next_run_whichever_engine(case, tmp_path):
    for engine in (Engine.EMBEDDED, Engine.BATSIM):
        (tmp_path / ".batsim-killed").mkdir()
        (tmp_path / ".batsim-killed" / "out_jobs.csv").write_text("half")
        batsim = RealBatsim(command=str(STANDIN), timeout=60)
        run_to_folder(case, PolicyChoice(policy="fcfs"), tmp_path, engine=engine, batsim=batsim)
        assert not list(tmp_path.glob(".batsim-*"))


def test_beyond_needs_no_supply(case, tmp_path):
    run_to_folder(
        case,
        PolicyChoice(policy="fcfs", settings={"beyond": "grid"}),
        tmp_path,
        engine=Engine.BATSIM,
        batsim=RealBatsim(command=str(STANDIN), timeout=60),
    )
    assert len(read_jobs(tmp_path / "out").id) == len(case.workloads[0].jobs)


def words(inputs: Inputs, policy: str, folder: Path, batsim: RealBatsim) -> set[str]:
    """What each engine says of a run that cannot be."""
    said = set()
    for engine in (Engine.EMBEDDED, Engine.REFERENCE, Engine.BATSIM):
        with pytest.raises(DecisionError) as caught:
            run_to_folder(load_inputs(inputs), PolicyChoice(policy=policy), folder, engine=engine, batsim=batsim)
        said.add(str(caught.value))
        assert caught.value.exit_code == 2
    return said


def test_a_job_without_a_value_is_refused_in_the_same_words_by_every_engine(root, tmp_path):
    toy = Inputs(platform=root / "platforms" / "toy.xml", workloads=(root / "workloads" / "toy.json",))
    said = words(toy, "density", tmp_path, RealBatsim(command=str(STANDIN), timeout=60))
    assert len(said) == 1 and "toy.json: job " in said.pop()


def test_a_supply_that_ends_too_low_is_explained_alike_by_every_engine(root, tmp_path):
    jobs = [{"id": str(size), "subtime": 0, "res": size, "walltime": 90, "profile": "p"} for size in (1, 4)]
    work = {"nb_res": 4, "jobs": jobs, "profiles": {"p": {"type": "delay", "delay": 50}}}
    (tmp_path / "w.json").write_text(json.dumps(work))
    (tmp_path / "low.txt").write_text('{"type": "power_supply", "timestamp": 0, "hosts": 2}')
    files = {"workloads": (tmp_path / "w.json",), "events": (tmp_path / "low.txt",)}
    low = Inputs(platform=root / "platforms" / "toy.xml", **files)
    said = words(low, "fcfs", tmp_path / "out", executable(tmp_path / "batsim", CANNOT_GO_ON))
    assert len(said) == 1 and "w0!4 wait while 2 hosts without power stay so" in said.pop()
