"""A run's folder is one run's: who made it is said, two at once are refused, and what is not whole is not read."""

import datetime
import hashlib
import json
import os
import signal
import subprocess
import sys

import pytest
from helpers.run_samples import run_facts
from msgspec.structs import replace

import decision
from decision import __version__
from decision.batsim.signals import Interrupted
from decision.experiments.folder import run_folder
from decision.experiments.inputs import Inputs, PolicyChoice, load_inputs
from decision.experiments.results import load_runs, run_names
from decision.experiments.run import run_to_folder
from decision.files.outputs_read import LOCK, RUN, check_whole, is_locked, lock_folder, read_facts, read_run_record
from decision.files.workload import Selection
from decision.model.errors import ConfigError, InputError, PolicyError


@pytest.fixture
def case(root):
    return load_inputs(Inputs(platform=root / "platforms/toy.xml", workloads=(root / "workloads/toy.json",)))


def write(folder, facts, *names):
    """A run that writes its own name into its files."""
    with run_folder(folder, facts) as written:
        for name in names:
            (folder / name).write_text(facts.policy)
            written.append(folder / name)


def names(folder):
    return {path.name for path in folder.iterdir()}


def test_run_json_says_what_made_the_files(case, root, tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(
        "class P:\n def __init__(self, n='1'): pass\n def reset(self, p, s): pass\n"
        " def decide(self, c, plan):\n  for job in c.queue: plan.start(job) if job.size <= plan.nb_free else None\n"
    )
    began = datetime.datetime.now(datetime.UTC)
    run_to_folder(case, PolicyChoice(policy=f"{mine}:P", seed=3), tmp_path / "out", command="decision run -p toy")
    facts = read_facts(tmp_path / "out")

    def sha256(path):
        return hashlib.sha256(path.read_bytes()).hexdigest()

    assert (facts.state, facts.decision, facts.command) == ("finished", __version__, "decision run -p toy")
    assert (facts.policy, facts.options, facts.seed, facts.engine) == (f"{mine}:P", {}, 3, "embedded")
    assert facts.policy_file.sha256 == sha256(mine)
    assert (facts.platform.name, facts.platform.sha256) == ("toy.xml", sha256(root / "platforms/toy.xml"))
    assert facts.workloads[0].sha256 == sha256(root / "workloads/toy.json")
    assert facts.process == os.getpid()
    assert abs((facts.begin - began).total_seconds()) < 60 and facts.begin <= facts.end
    assert facts.files == {path.name: path.stat().st_size for path in (tmp_path / "out").glob("out_*")}
    assert names(tmp_path / "out") == {*facts.files, RUN}


def test_it_says_which_jobs(root, tmp_path):
    chosen = Selection(jobs=(1, 3), nodes=4)
    inputs = Inputs(platform=root / "platforms/toy.xml", workloads=(root / "workloads/toy.json",), selection=chosen)
    run_to_folder(load_inputs(inputs), PolicyChoice(policy="easy"), tmp_path)
    assert read_facts(tmp_path).selection == chosen
    assert json.loads((tmp_path / RUN).read_text())["selection"]["jobs"] == [1, 3]


def test_it_is_there_first_and_says_that_the_run_goes_on(tmp_path):
    with run_folder(tmp_path, run_facts()):
        assert read_facts(tmp_path).state == "running"
        with pytest.raises(InputError, match=r"a run goes on in this folder \(process 7 on here\); wait for its end"):
            check_whole(tmp_path)
    check_whole(tmp_path)


def test_a_new_run_replaces_the_files_of_the_one_before_as_a_whole(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    write(tmp_path, run_facts(policy="easy"), "out_jobs.csv", "out_energy.csv", "schedule.png")
    write(tmp_path, run_facts(policy="fcfs"), "out_jobs.csv")
    assert names(tmp_path) == {"out_jobs.csv", "notes.txt", RUN}
    assert (tmp_path / "out_jobs.csv").read_text() == "fcfs"
    assert read_facts(tmp_path).policy == "fcfs"


def test_a_run_that_fails_says_why_and_the_next_one_still_knows_the_files_before(tmp_path):
    write(tmp_path, run_facts(policy="easy"), "out_jobs.csv", "schedule.png")
    for error, reason in (
        (PolicyError("t=8 s: w0!1 cannot start\non this host"), "t=8 s: w0!1 cannot start"),
        (Interrupted(signal.SIGTERM), "Interrupted: SIGTERM"),
    ):
        with pytest.raises(type(error)), run_folder(tmp_path, run_facts(policy="fcfs")):
            raise error
        assert (read_facts(tmp_path).state, read_facts(tmp_path).reason) == ("failed", reason)
        with pytest.raises(InputError, match="the last run in this folder failed"):
            check_whole(tmp_path)
    write(tmp_path, run_facts(policy="sjf"), "out_jobs.csv")
    assert names(tmp_path) == {"out_jobs.csv", RUN}


def test_after_a_mistake_of_the_user_all_is_as_it_was(tmp_path):
    for before in (None, run_facts(policy="easy")):
        if before is not None:
            write(tmp_path, before, "out_jobs.csv")
        there = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        with pytest.raises(ConfigError), run_folder(tmp_path, run_facts(policy="fcfs")):
            raise ConfigError("no such option")
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == there


def test_two_runs_at_once_are_refused(tmp_path):
    with run_folder(tmp_path, run_facts()):
        with pytest.raises(ConfigError, match=r"another run goes on in this folder \(process 7 on here\)") as caught:
            write(tmp_path, run_facts(policy="other"))
        assert caught.value.field == "output"
        assert read_facts(tmp_path).policy == "easy"
    write(tmp_path, run_facts(policy="other"))


def test_a_lock_ends_with_its_process_however_that_ends(tmp_path):
    code = (
        "import sys, time; from pathlib import Path; from decision.files.outputs_read import lock_folder\n"
        "lock = lock_folder(Path(sys.argv[1])); print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        assert is_locked(tmp_path)
        assert lock_folder(tmp_path) is None
        process.kill()
    assert not is_locked(tmp_path)
    assert (tmp_path / LOCK).exists()
    (tmp_path / RUN).write_text("")
    write(tmp_path, run_facts())
    assert names(tmp_path) == {RUN}


def test_a_run_that_was_killed_is_known_as_dead(tmp_path):
    with lock_folder(tmp_path):
        pass
    with pytest.raises(ConfigError), run_folder(tmp_path, run_facts()):
        left = (tmp_path / RUN).read_bytes()
        raise ConfigError("")
    (tmp_path / RUN).write_bytes(left)
    with pytest.raises(InputError, match=r"died without a word \(process 7 on here\); run it again, or delete"):
        check_whole(tmp_path)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda out: (out / "out_schedule.csv").unlink(), "out_schedule.csv: is missing: the run wrote"),
        (lambda out: (out / "out_jobs.csv").write_text("x"), "out_jobs.csv: was changed after the run: it had"),
        (
            lambda out: (out / "out_consumed_energy.csv").write_text("of another run"),
            "out_consumed_energy.csv: is not of the run that made the other files",
        ),
    ],
)
def test_half_and_mixed_folders_are_refused(case, tmp_path, change, says):
    run_to_folder(case, PolicyChoice(policy="easy"), tmp_path)
    for place in (tmp_path, tmp_path / "out"):
        read_run_record(place)
    change(tmp_path)
    for place in (tmp_path, tmp_path / "out"):
        with pytest.raises(InputError) as caught:
            read_run_record(place)
        assert says in str(caught.value) and "delete run.json" in str(caught.value)


def test_what_no_run_of_ours_made_is_read_as_it_is(case, tmp_path):
    run_to_folder(case, PolicyChoice(policy="easy"), tmp_path)
    (tmp_path / "out_machine_states.csv").unlink()  # a large one, which may be spared
    read_run_record(tmp_path)
    (tmp_path / RUN).unlink()
    read_run_record(tmp_path)
    for text in ("", "[]", "{}", '{"state": "of another program"}'):
        (tmp_path / RUN).write_text(text)
        with pytest.raises(InputError, match=r"run.json: damaged, or no run's"):
            read_run_record(tmp_path)


def test_runs_are_called_by_their_policies(case, tmp_path):
    for folder, policy in (("a", "fcfs"), ("b", "easy")):
        run_to_folder(case, PolicyChoice(policy=policy), tmp_path / folder)
    assert [run.name for run in load_runs([tmp_path])] == ["fcfs", "easy"]
    assert [run.facts.policy for run in load_runs([tmp_path])] == ["fcfs", "easy"]
    (tmp_path / "a" / RUN).unlink()
    assert [run.name for run in load_runs([tmp_path])] == ["a", "easy"]
    easy = run_facts()
    other = replace(easy, options={"age_weight": "2"})
    places = [tmp_path / name for name in "abc"]
    assert run_names(places, [easy, easy, other]) == ["easy (a)", "easy (b)", "easy,age_weight=2"]


def test_a_result_that_is_written_from_python_takes_the_place_of_a_run(case, root, tmp_path):
    run_to_folder(case, PolicyChoice(policy="easy"), tmp_path)
    decision.simulate(root / "platforms/toy.xml", root / "workloads/toy.json", "fcfs").write(tmp_path)
    assert not (tmp_path / RUN).exists()
    read_run_record(tmp_path)


def test_a_reason_with_half_a_character_is_kept(tmp_path):
    with pytest.raises(PolicyError), run_folder(tmp_path, run_facts()):
        raise PolicyError("decide failed: ValueError: \ud800")
    assert read_facts(tmp_path).reason == "decide failed: ValueError: ?"
