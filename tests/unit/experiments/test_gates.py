"""The gates of a learned policy, and that nothing is deployed that has not passed them."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.green_worlds import supply
from msgspec.structs import replace

from decision import __version__
from decision.experiments.gates import GATE_COPIES, Measures, check_gates, gates_over, keep_check, measure
from decision.experiments.inputs import LogOnHosts
from decision.experiments.worth import join_parts, value_share
from decision.files.generate.paper_workloads import GreenModel, green_workload
from decision.files.text import InputFacts
from decision.model.errors import ConfigError, warn_once
from decision.model.reshape import shaken
from decision.model.workload import Delay, Job, Workload
from decision.rl.envs import equal_hosts
from decision.rl.learning import find_checkpoint, shipped_policies
from decision.rl.learning.checkpoint import (
    GateCheck,
    Manifest,
    read_checkpoint,
    read_manifest,
    require_gates,
    write_checkpoint,
)
from decision.rl.learning.config import load_config
from decision.rl.learning.weights import dump, dump_numbers
from decision.rl.schedulers.learned import GUARD_AFTER, RUNTIME, Learned
from decision.rl.schedulers.timetable import Timetable
from decision.simulation import simulate_workloads

SUPPLY = InputFacts(name="supply.txt", sha256="4")
FILES = (InputFacts(name="platform.xml", sha256="1"), InputFacts(name="log.swf", sha256="2"))


def save(folder: Path, by_runtime: float = 0.0) -> Path:
    """A checkpoint of the learned order with WFP3's weights, but that of the walltime."""
    scheduler, config = Learned(), load_config("learned")
    numbers = scheduler.references()[0]
    numbers[[RUNTIME, GUARD_AFTER]] = by_runtime, 1.4
    manifest = Manifest(
        decision=__version__,
        algorithm=config.algorithm,
        config=config,
        encoder=dict(scheduler.sees),
        nb_hosts=4,
        platform=FILES[0],
        workloads=(),
        steps=0,
    )
    path = folder / "learned.ckpt"
    write_checkpoint(path, manifest, dump({"weights": torch.from_numpy(numbers)}))
    return path


def busy() -> Workload:
    """Wide, long jobs among short ones that come faster than they can be done."""
    rows = [(3.0 * i, 1 + 3 * (i % 9 == 0), 40.0 if i % 9 == 0 else 4.0 + i % 7) for i in range(120)]
    jobs = [Job(id=f"w0!{i}", submit_time=t, size=n, walltime=w, profile=f"{w}") for i, (t, n, w) in enumerate(rows)]
    return Workload(name="w0", jobs=jobs, profiles={f"{w}": Delay(duration=w) for *_, w in rows}, nb_res=4)


def check(checkpoint: Path, files: tuple[InputFacts, InputFacts] = FILES) -> GateCheck:
    """The gates on the busy log, kept in the manifest."""
    found = check_gates(checkpoint, LogOnHosts(equal_hosts(4), busy(), files))
    keep_check(checkpoint, found)
    return found


def test_what_passes_is_deployed_and_its_manifest_says_on_what_it_was_checked(tmp_path):
    checkpoint = save(tmp_path)
    found = check(checkpoint)
    assert [gate.name for gate in found.gates if not gate.passed] == []
    assert len(found.gates) == 6
    (kept,) = read_manifest(checkpoint).gates
    assert (kept.platform, kept.workload, kept.jobs, kept.decision) == (*FILES, 120, __version__)
    require_gates(str(checkpoint))


def test_a_packer_is_asked_for_little_idle_room_in_place_of_short_waits():
    found = check_gates(find_checkpoint("packer"), LogOnHosts(equal_hosts(4), busy(), FILES))
    assert [gate.name for gate in found.gates if not gate.passed] == []
    assert found.gates[0].name == "idle room" and len(found.gates) == 3


def test_the_longest_wait_is_judged_by_its_median_over_copies_and_by_the_worst_of_them():
    easy = [Measures(10.0, 2.0, 100.0)] * 3

    def failed(*longest: float) -> list[str]:
        own = [Measures(9.0, 1.5, each) for each in longest]
        return [gate.name for gate in gates_over(own, easy) if not gate.passed]

    assert failed(140.0, 149.0, 199.0) == []
    assert failed(140.0, 149.0, 201.0) == ["longest wait, times EASY's, largest of the copies"]
    assert failed(140.0, 160.0, 170.0) == ["longest wait, times EASY's, median of the copies"]


def test_idle_room_is_what_no_job_uses_from_the_first_submission_to_the_last_end():
    rows = [(0.0, 2, 100.0), (100.0, 1, 50.0)]  # 250 host-seconds of 4 x 150
    jobs = [Job(id=f"w0!{i}", submit_time=t, size=n, walltime=w, profile=f"{w}") for i, (t, n, w) in enumerate(rows)]
    log = Workload(name="w0", jobs=jobs, profiles={f"{w}": Delay(duration=w) for *_, w in rows}, nb_res=4)
    table = simulate_workloads(equal_hosts(4), [log], "easy").jobs
    assert measure(table, 4).idle == pytest.approx(1 - 250 / 600)


POWER = supply(1, 400)  # for 8 hosts


def worthy() -> Workload:
    """Jobs with values and deadlines."""
    return green_workload(np.random.default_rng(1), 600, GreenModel(hosts=8, most_hosts=4, price_by_qos=True))


def check_on_value(checkpoint: Path, jobs: Workload) -> GateCheck:
    """The gates under a supply of power."""
    return check_gates(checkpoint, LogOnHosts(equal_hosts(8), jobs, (*FILES, SUPPLY), events=POWER))


def test_a_policy_that_knows_values_is_asked_for_value_and_not_for_short_waits():
    jobs = worthy()
    found = check_on_value(find_checkpoint("timetable"), jobs)
    assert [(gate.name, gate.passed) for gate in found.gates] == [
        ("value missed, as of density+first-fit,suspend=density", True),
        ("value missed, as of qos+first-fit", True),
        ("value violated, as of easy", True),
        ("jobs that other engines start otherwise", True),
    ]
    copies = [shaken(jobs, copy) for copy in range(1, GATE_COPIES + 1)]
    records = [simulate_workloads(equal_hosts(8), [copy], "qos+first-fit", events=POWER) for copy in copies]
    missed = np.mean([1 - value_share(join_parts(record.jobs), record.worth) for record in records])
    assert found.gates[1].most == pytest.approx(missed, rel=1e-5)
    assert found.gates[0].most < found.gates[1].most < 1, "suspensions are worth something"
    assert found.events == (SUPPLY,)


def test_who_wants_the_least_value_first_fails_and_checks_under_other_supplies_are_kept_apart(tmp_path):
    manifest, _ = read_checkpoint(find_checkpoint("timetable"))
    checkpoint = tmp_path / "worst.ckpt"
    worst = -Timetable().first_weights(np.random.default_rng(0))
    write_checkpoint(checkpoint, replace(manifest, gates=()), dump_numbers(worst))
    jobs = worthy()
    found = check_on_value(checkpoint, jobs)
    assert [gate.passed for gate in found.gates] == [False, False, False, True]
    for each in (found, found, replace(found, events=())):
        keep_check(checkpoint, each)
    assert [check.events for check in read_manifest(checkpoint).gates] == [(SUPPLY,), ()]


def test_gates_on_value_need_jobs_that_say_theirs():
    with pytest.raises(ConfigError, match=r"job w0!0 has no 'value'") as error:
        check_on_value(find_checkpoint("timetable"), busy())
    assert "\n" not in str(error.value)


def test_a_second_check_on_the_same_log_replaces_the_first(tmp_path):
    checkpoint = save(tmp_path)
    for _ in range(2):
        check(checkpoint)
    check(checkpoint, (FILES[0], replace(FILES[1], sha256="3")))
    assert [check.workload.sha256 for check in read_manifest(checkpoint).gates] == ["2", "3"]


def test_the_longest_jobs_first_fail_and_are_not_deployed(tmp_path):
    checkpoint = save(tmp_path, by_runtime=-50.0)
    assert not check(checkpoint).gates[0].passed, "mean wait"
    with pytest.raises(ConfigError, match=r"it fails mean wait on log\.swf"):
        require_gates(f"{checkpoint},guard=auto")


@pytest.mark.parametrize("policy", ["easy", "saf+easy,guard=auto", "./mine.py:Mine"])
def test_policies_that_were_not_learned_need_no_gates(policy):
    require_gates(policy)


def invoke(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "decision", *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("command", ["run", "serve"])
def test_what_was_not_checked_is_refused_unless_forced(tmp_path, command):
    checkpoint = save(tmp_path)
    inputs = ["-p", "toy", "-w", "toy", "-o", str(tmp_path / "out")] if command == "run" else []
    refused = invoke(command, "--policy", str(checkpoint), *inputs)
    assert (refused.returncode, "its manifest has no gates" in refused.stderr) == (2, True)
    if command == "run":
        assert invoke(command, "--policy", str(checkpoint), "--force", *inputs).returncode == 0


def test_the_shipped_policy_for_power_that_comes_and_goes_may_be_deployed():
    require_gates("timetable")
    checks = read_manifest(find_checkpoint("timetable")).gates
    assert [(len(check.gates), len(check.events)) for check in checks] == [(4, 1)] * 3


def test_the_shipped_packer_passes_where_the_machine_is_full_and_warns_of_the_log_that_it_fails_on(caplog):
    checks = read_manifest(find_checkpoint("packer")).gates
    failed = {check.workload.name: [gate.name for gate in check.gates if not gate.passed] for check in checks}
    full = ("wl1_rnda.json", "lublin_256.json", "WL2-RND-b.json", "WL1-100-b.json")
    assert failed == {**{log: [] for log in full}, "coare.swf": ["jobs that wait on a nearly idle machine"]}
    warn_once.cache_clear()
    require_gates("packer,estimate=given,guard=auto")
    assert "policy packer: it fails jobs that wait on a nearly idle machine on coare.swf; decision pol" in caplog.text


def test_the_shipped_learned_policy_may_be_deployed_and_passes_on_shipped_data():
    require_gates("learned")
    shipped = find_checkpoint("learned")
    before = shipped.read_bytes()
    done = invoke("gates", "learned", "-p", "taurus", "-w", "taurus_week_flops", "--json")
    gates = json.loads(done.stdout)["gates"]
    assert [gate["gate"] for gate in gates if not gate["passed"]] == []
    assert (done.returncode, len(gates)) == (0, 6)
    assert shipped.read_bytes() == before


def test_what_a_shipped_policy_fails_over_copies_is_said_in_its_line_and_where_it_runs(caplog):
    lines = {line.name: line.summary for line in shipped_policies()}
    coare, made = "coare.swf", "lublin_10000.json"
    found = {"ranking": (coare, 2.2), "rlscheduler": (coare, 2.13), "dbf": (coare, 1.58), "dbf-0-10": (made, 7.17)}
    for name, (log, times) in found.items():
        said = f"; fails on {log}: longest wait, times EASY's, median of the copies {times} (at most 1.5)"
        assert lines[name].endswith(said)
        warn_once.cache_clear()
        require_gates(name)
        assert f"policy {name}: it fails longest wait" in caplog.text
    assert lines["packer"].endswith("; fails on coare.swf: jobs that wait on a nearly idle machine 90 (at most 0)")
    assert lines["joint"].endswith("; fails on coare.swf: mean wait 161 (at most 114)")
    assert "fails" not in lines["learned"] + lines["timetable"]


def test_a_policy_of_numbers_is_checked_without_torch(tmp_path):
    code = (
        "import sys; sys.modules['torch'] = None; sys.modules['gymnasium'] = None\n"
        "import decision as d\n"
        "print(len(d.gates('learned', 'toy', 'toy').gates))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout == "6\n", done.stderr
