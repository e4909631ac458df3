"""From policies to a file of choices, and from that to a checkpoint: from a shell's point of view, and in Python."""

import csv
import re
import zipfile

import numpy as np
import pytest
from click.testing import CliRunner
from helpers.learning_runs import write_log

from decision.cli.app import app
from decision.files import load_platform, load_workload
from decision.files.text import file_facts
from decision.files.workload import Selection
from decision.model.errors import InputError
from decision.rl.learning.checkpoint import read_manifest
from decision.rl.learning.choices import read_choices, replay_choices
from decision.rl.learning.config import load_config
from decision.rl.learning.schedulers import choosing_setup

SMALL = ("--set", "env.jobs=40", "--set", "env.head=8", "--set", "env.tail=0")
FEW = (*SMALL, "--set", "learn.batch=64")
SAC = (*FEW, "--set", "learn.envs=4", "--set", "learn.warmup=128", "--set", "learn.offline=150")


def cli(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "160"})


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "log.swf"
    write_log(path)
    return path


@pytest.fixture(scope="module")
def platform(log):
    path = log.with_name("p.xml")
    assert cli("platform", "flat", "--hosts", 8, "-o", path).exit_code == 0
    return path


def collect(log, platform, path):
    shares = ("sjf+first-fit", "fcfs", "--share", 0.9, "--share", 0.1, "--transitions", 6000)
    made = cli("collect", *shares, "-p", platform, "-w", log, "-o", path, *SMALL)
    assert made.exit_code == 0, made.output
    return path


@pytest.fixture(scope="module")
def choices(log, platform):
    return collect(log, platform, log.with_name("sjf.choices"))


@pytest.fixture
def train(log, platform, choices, tmp_path):
    def run(preset, folder, *more, data=choices):
        where = ("-p", platform, "-w", log, "-o", tmp_path / folder)
        given = () if data is None else ("--data", data)
        return cli("train", "dbf", "--preset", preset, *where, *given, *more)

    return run


def curve(folder):
    return list(csv.DictReader((folder / "progress.csv").open()))


def test_a_file_says_what_it_is_of_and_keeps_shares(choices, log):
    head, numbers = read_choices(choices)
    assert [source.policy for source in head.sources] == ["sjf+first-fit", "fcfs"]
    one, other = (source.transitions for source in head.sources)
    assert 5400 <= one < 5700
    assert 600 <= other < 900
    assert head.workload.name == "log.swf"
    assert head.placed == 40
    assert one + other == numbers["transitions"].sum()
    assert choices.stat().st_size < 5 * (one + other), "a megabyte for 200,000 transitions"


def test_the_same_seed_gives_the_same_bytes(choices, log, platform, tmp_path):
    assert collect(log, platform, tmp_path / "again.choices").read_bytes() == choices.read_bytes()


def test_cloning_learns_to_choose_as_was_recorded_and_resumes(train, tmp_path, choices, log, platform):
    done = train("dbf-bc", "whole", *SMALL, "--steps", 400)
    assert done.exit_code == 0, done.output
    assert "choices;" in done.stderr
    rows = curve(tmp_path / "whole")
    assert float(rows[-1]["agreement"]) > 0.9 > float(rows[1]["agreement"]) - 0.1
    assert float(rows[-1]["validation_bounded_slowdown"]) < float(rows[0]["validation_bounded_slowdown"])
    checkpoint = tmp_path / "whole" / "dbf.ckpt"
    manifest = read_manifest(checkpoint)
    assert (manifest.algorithm, manifest.data.name) == ("bc", "sjf.choices")
    assert (
        cli("run", "-p", platform, "-w", log, "--policy", checkpoint, "--force", "-o", tmp_path / "run").exit_code == 0
    )

    assert train("dbf-bc", "parts", *SMALL, "--steps", 200).exit_code == 0
    assert train("dbf-bc", "parts", *SMALL, "--steps", 400, "--resume").exit_code == 0
    assert (tmp_path / "parts" / "dbf.ckpt").read_bytes() == checkpoint.read_bytes()


@pytest.mark.parametrize(("preset", "steps", "more"), [("dbf-crr", (100, 200), FEW), ("dbf-sac", (256, 512), SAC)])
def test_what_was_stopped_goes_on_as_if_it_had_not(train, tmp_path, preset, steps, more):
    half, whole = steps
    assert train(preset, "whole", *more, "--steps", whole).exit_code == 0
    assert train(preset, "parts", *more, "--steps", half).exit_code == 0
    resumed = train(preset, "parts", *more, "--steps", whole, "--resume")
    assert resumed.exit_code == 0, resumed.output
    one, other = (tmp_path / folder / "dbf.ckpt" for folder in ("whole", "parts"))
    assert one.read_bytes() == other.read_bytes()


def test_sac_learns_without_recorded_choices_too(train, tmp_path):
    alone = (*SAC[:-2], "--steps", 512)
    done = train("dbf-sac", "alone", *alone, data=None)
    assert done.exit_code == 0, done.output
    rows = curve(tmp_path / "alone")
    assert float(rows[-1]["updates"]) == 128
    assert float(rows[-1]["temperature"]) > 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("dbf-bc", "x", *SMALL, "--set", "env.jobs=41"), "collected with another number of placed jobs: 40, now 41"),
        (("dbf-bc", "x", *SMALL, "--select", ":300"), "another selection of jobs: jobs all, nodes any"),
        (("dbf-compact", "x", *SMALL), "ppo does not learn from recorded choices; leave them out (--data)"),
    ],
)
def test_choices_of_something_else_are_refused(train, arguments, says):
    refused = train(*arguments)
    assert refused.exit_code == 2
    assert says in " ".join(refused.stderr.split())
    assert refused.stderr.strip().splitlines()[-1].startswith("error:")


def test_choices_of_another_file_are_refused_by_both_names(log, choices, tmp_path):
    files = ("-p", "taurus", "-w", log, "--data", choices, "-o", tmp_path / "x")
    refused = cli("train", "dbf", "--preset", "dbf-bc", *files, *SMALL)
    assert refused.exit_code == 2
    said = (
        r"error: \S+: it was collected with another platform: p.xml \(sha256 \w{8}\), now taurus.xml \(sha256 \w{8}\); "
    )
    assert re.match(said + "collect again", " ".join(refused.stderr.split()))


def test_cloning_needs_choices(train):
    refused = train("dbf-bc", "x", *SMALL, data=None)
    assert refused.exit_code == 2
    assert "bc learns from recorded choices: make some and name them (--data)" in " ".join(refused.stderr.split())


@pytest.mark.parametrize("damage", ["cut", "not a zip", "other members", "negative waits"])
def test_a_damaged_file_gets_one_line(choices, tmp_path, damage):
    path = tmp_path / "damaged.choices"
    data = choices.read_bytes()
    if damage == "cut":
        path.write_bytes(data[: len(data) // 2])
    elif damage == "not a zip":
        path.write_text("choices")
    else:
        with zipfile.ZipFile(choices) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
            for name in old.namelist():
                content = old.read(name)
                if name == "wait" and damage == "negative waits":
                    content = (np.frombuffer(content, "<f8") - 1e6).astype("<f8").tobytes()
                if name != "first" or damage != "other members":
                    new.writestr(name, content)
    with pytest.raises(InputError, match=r"damaged.choices: "):
        read_choices(path)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("sjf", "sjf"), "a policy is named twice"),
        (("sjf", "fcfs", "--share", "1"), "each of the 2 policies needs one"),
        ((), "name policies, or a recorded session with --from"),
        (("sjff",), "sjff"),
        (("sjf", "--for", "ranking"), "ranking does not choose step by step"),
    ],
)
def test_what_cannot_be_collected_is_refused(log, platform, tmp_path, arguments, says):
    out = tmp_path / "x.choices"
    refused = cli("collect", *arguments, "-p", platform, "-w", log, "-o", out)
    assert refused.exit_code == 2
    assert says in " ".join(refused.stderr.split())
    assert not out.exists()


@pytest.mark.parametrize("case", ["seed1_32hosts_300jobs", "seed1_128hosts_400jobs"])
def test_a_run_of_batsched_teaches_what_it_did(root, tmp_path, case):
    recorded, out = root / "tests" / "golden" / "schedules" / case, tmp_path / "theirs.choices"
    files = ("-p", recorded / "platform.xml", "-w", recorded / "workload.json")
    made = cli("collect", "--from", recorded / "easy_bf", *files, "-o", out)
    assert made.exit_code == 0, made.output
    _, numbers = read_choices(out)
    waits = [float(job["waiting_time"]) for job in csv.DictReader((recorded / "easy_bf_jobs.csv").open())]
    np.testing.assert_allclose(np.sort(numbers["wait"]), np.sort(waits), atol=1e-3)


@pytest.mark.parametrize(("head", "late"), [(300, 0), (32, 200)])
def test_a_window_that_holds_the_queue_follows_all_that_batsched_did(root, tmp_path, head, late):
    recorded, out = root / "tests" / "golden" / "schedules" / "seed1_32hosts_300jobs", tmp_path / "theirs.choices"
    files = recorded / "platform.xml", recorded / "workload.json"
    changes = (f"env.head={head}", "env.tail=0", "env.jobs=300", "env.online=false")
    assert cli("collect", "--from", recorded / "easy_bf", "-p", files[0], "-w", files[1], "-o", out).exit_code == 0
    setup = choosing_setup(load_config("dbf-bc", changes), load_workload(files[1]), load_platform(files[0]))
    _, found = replay_choices(out, setup, [file_facts(file) for file in files], Selection())
    assert found.late == 0 if late == 0 else found.late > late
    assert found.placed == 300 if late == 0 else found.placed < 300


def test_a_folder_without_a_run_gets_one_line(log, platform, tmp_path):
    refused = cli("collect", "--from", tmp_path, "-p", platform, "-w", log, "-o", tmp_path / "x.choices")
    assert refused.exit_code == 2
    assert "no run there" in refused.stderr
    assert refused.stderr.strip().splitlines()[-1].startswith("error:")


def test_a_recorded_session_teaches_what_its_scheduler_did(root, tmp_path):
    recorded, out = root / "tests" / "golden" / "sessions" / "first_fit_delay", tmp_path / "theirs.choices"
    files = ("-p", recorded / "platform.xml", "-w", recorded / "workload0.json")
    made = cli("collect", "--from", recorded / "session.jsonl", *files, "-o", out)
    assert made.exit_code == 0, made.output
    assert "one episode: train with --set env.jobs=" in made.stderr
    _, numbers = read_choices(out)
    waits = [float(job["waiting_time"]) for job in csv.DictReader((recorded / "out_jobs.csv").open())]
    np.testing.assert_allclose(np.sort(numbers["wait"]), np.sort(waits), atol=1e-3)
