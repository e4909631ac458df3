"""An author's mistake is told in one line, with the line of the author's file."""

import re
from pathlib import Path

import pytest
from helpers import failing_policies
from helpers.policy_toys import platform

from decision.model.errors import ConfigError, DecideTimeoutError, PolicyError
from decision.model.workload import Delay, Job, Workload
from decision.policies import find_policy
from decision.policies.kamelot import Kamelot
from decision.policies.loading import in_words, reset_policy
from decision.simulation import simulate_workloads, try_policy

FILE = Path(failing_policies.__file__)


@pytest.fixture(autouse=True)
def in_the_folder(monkeypatch):
    monkeypatch.chdir(FILE.parent)


def place(statement: str, after: str) -> str:
    """Where a statement stands, behind the class of this name."""
    lines = FILE.read_text().splitlines()
    begin = next(at for at, line in enumerate(lines) if line.startswith(f"class {after}("))
    number = next(at for at in range(begin, len(lines)) if lines[at].strip() == statement) + 1
    return f"(failing_policies.py:{number}: {statement})"


def complaint(policy: str, **options: float) -> str:
    jobs = [Job(id=f"w0!{i}", submit_time=0.0, size=1, walltime=30.0, profile="p") for i in range(2)]
    workload = Workload(name="w0", jobs=jobs, profiles={"p": Delay(duration=20.0)}, nb_res=4)
    with pytest.raises(PolicyError) as raised:
        simulate_workloads(platform(4, sleeps=True), [workload], getattr(failing_policies, policy)(), **options)
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize(
    ("policy", "words", "statement"),
    [
        ("InReset", "policy InReset: reset failed: ValueError: boom", 'raise ValueError("boom")'),
        ("Divides", "t=0 s: policy Divides: decide failed: ZeroDivisionError: division by zero", "return 1 / 0"),
        ("Exits", "t=0 s: policy Exits: decide failed: SystemExit: 5", "sys.exit(5)"),
        (
            "InLibrary",
            "t=0 s: policy InLibrary: decide failed: ValueError: time data 'now' does not match format '%Y'",
            'time.strptime("now", "%Y")',
        ),
    ],
)
def test_what_a_policy_raises_names_its_file_line_and_statement(policy, words, statement):
    assert complaint(policy) == f"{words} {place(statement, policy)}"


@pytest.mark.parametrize(
    ("policy", "method", "signature"),
    [("ResetTakesNothing", "reset", "reset(self, platform, seed)"), ("DecideTakesNothing", "decide", None)],
)
def test_a_missing_argument_names_the_definition_and_what_it_must_be(policy, method, signature):
    text = complaint(policy)
    signature = signature or "decide(self, cluster, plan)"
    given = f"policy {policy}: {method} failed: TypeError: {policy}.{method}() takes 1 positional argument but 3 were"
    assert f"{given} given {place(f'def {method}(self):', policy)}; it must be {signature}" in text


@pytest.mark.parametrize(
    ("policy", "words", "where"),
    [
        ("Starts", "None is not a job, nor a job's number", "Starts"),
        ("StartsText", "'1' is not a job, nor a job's number", "Starts"),
        ("StartsUnknown", "there is no job number 1000000000000; 2 were submitted", "Starts"),
        ("HostNoList", "hosts are 3, and must be a list of ids", "Starts"),
        ("HostNames", "'host-1' is not a host's id", "Starts"),
        ("HostTooFar", "host 4000 does not exist; the platform has hosts 0-3", "Starts"),
        ("CallsSoon", "'soon' is not a time in seconds", "CallsSoon"),
        ("SwitchesToName", "'off' is not the number of a power state", "SwitchesToName"),
        ("WakesNothing", "hosts are None, and must be a list of ids", "WakesNothing"),
    ],
)
def test_a_plan_refuses_arguments_in_words_and_names_the_line(policy, words, where):
    statement = {
        "Starts": 'plan.start(job if self.what == "first" else self.what, self.hosts)',
        "CallsSoon": 'plan.call_at("soon")',
        "SwitchesToName": 'plan.set_pstate([0], "off")',
        "WakesNothing": "plan.wake(None)",
    }[where]
    assert complaint(policy) == f"t=0 s: {words} {place(statement, where)}"


@pytest.mark.parametrize(
    ("policy", "statement"), [("Loops", None), ("Sleeps", "time.sleep(1e6)"), ("CatchesAll", None)]
)
def test_a_decision_that_takes_too_long_is_ended_where_it_was(policy, statement):
    text = complaint(policy, decide_limit=0.3)
    assert text.startswith(f"t=0 s: policy {policy}: decide took longer than 0.3 s (failing_policies.py:")
    if statement:
        assert text.endswith(place(statement, policy))


def test_a_limit_changes_nothing_for_a_policy_that_keeps_it():
    jobs = [Job(id=f"w0!{i}", submit_time=float(i), size=1, walltime=30.0, profile="p") for i in range(20)]
    workload = Workload(name="w0", jobs=jobs, profiles={"p": Delay(duration=20.0)}, nb_res=4)
    one, other = (
        simulate_workloads(platform(4), [workload], failing_policies.First(), decide_limit=limit).jobs.start_time
        for limit in (0.0, 20.0)
    )
    assert one.tolist() == other.tolist()


def test_check_policy_stops_at_a_decision_that_takes_too_long():
    (finding,) = try_policy(failing_policies.Loops, decide_limit=0.3)
    assert finding.startswith("one job: t=0 s: policy Loops: decide took longer than 0.3 s (failing_policies.py:")


def test_check_policy_names_the_line_once():
    (finding,) = try_policy(failing_policies.InReset)
    where = place('raise ValueError("boom")', "InReset")
    assert finding == f"one job: policy InReset: reset failed: ValueError: boom {where}"


def test_a_policy_that_cannot_be_made_names_the_line():
    with pytest.raises(ConfigError) as raised:
        find_policy(f"{FILE}:InInit")
    where = place('self.depth = {}["depth"]', "InInit")
    assert str(raised.value) == f"policy {FILE}:InInit: making it failed: KeyError: 'depth' {where}"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("import sys\nsys.exit(4)\n", "SystemExit: 4 (broken.py:2: sys.exit(4))"),
        ("x = 1\nclass P(:\n", "SyntaxError: invalid syntax (broken.py:2: class P(:)"),
        ("import nowhere_at_all\n", "No module named 'nowhere_at_all' (broken.py:1: import nowhere_at_all)"),
    ],
)
def test_a_file_that_cannot_be_run_names_its_line(tmp_path, monkeypatch, source, words):
    monkeypatch.chdir(tmp_path)
    Path("broken.py").write_text(source)
    with pytest.raises(ConfigError) as raised:
        find_policy("./broken.py:P")
    assert str(raised.value).startswith("policy ./broken.py:P: running broken.py failed: ")
    assert str(raised.value).endswith(words)


def test_a_mistake_of_ours_stays_one(monkeypatch):
    monkeypatch.setattr(Kamelot, "reset", len)
    with pytest.raises(TypeError):
        reset_policy(Kamelot(), platform(4), 0)


def test_text_of_several_lines_becomes_one():
    assert in_words(ValueError("two\n  lines")) == "ValueError: two lines"
    assert re.fullmatch("DecideTimeoutError", in_words(DecideTimeoutError("")))
