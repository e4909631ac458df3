import io
import json
import logging
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from decision.batsim.pybatsim import PybatsimAgent
from decision.model.errors import ConfigError, PolicyError, RemoteProtocolError

FILLER = "pybatsim:schedulers.fillerSched:FillerSched"
needs_pybatsim = pytest.mark.skipif(find_spec("batsim") is None, reason="pybatsim 3.2.1 is not installed")

# --- What Batsim says ----------------------------------------------------------------------------------------


def message(now: float, *events: tuple[str, dict[str, Any]]) -> bytes:
    listed = [{"timestamp": now, "type": kind, "data": data} for kind, data in events]
    return json.dumps({"now": now, "events": listed}).encode()


def begins(nb_hosts: int, **config: Any) -> bytes:
    options = {"profiles-forwarded-on-submission": False, "dynamic-jobs-enabled": False}
    options |= {"dynamic-jobs-acknowledged": False, "forward-unknown-events": False, "redis-enabled": False} | config
    hosts = [{"id": i, "name": f"n{i}", "state": "idle", "properties": {}} for i in range(nb_hosts)]
    data = {"nb_resources": nb_hosts, "nb_compute_resources": nb_hosts, "nb_storage_resources": 0}
    data |= {"allow_compute_sharing": False, "allow_storage_sharing": True, "config": options}
    data |= {"compute_resources": hosts, "storage_resources": [], "workloads": {"w0": "w.json"}}
    return message(0.0, ("SIMULATION_BEGINS", data | {"profiles": {"w0": {"p": {"type": "delay", "delay": 5}}}}))


def submitted(job: str, size: int, walltime: float = 10.0) -> tuple[str, dict[str, Any]]:
    fields = {"id": job, "subtime": 0.0, "res": size, "walltime": walltime, "profile": "p"}
    return "JOB_SUBMITTED", {"job_id": job, "job": fields}


def completed(job: str, hosts: str) -> tuple[str, dict[str, Any]]:
    state = {"job_state": "COMPLETED_SUCCESSFULLY", "return_code": 0, "alloc": hosts}
    return "JOB_COMPLETED", {"job_id": job} | state


def decisions(reply: bytes) -> list[tuple[str, str]]:
    return [(event["data"]["job_id"], event["data"]["alloc"]) for event in json.loads(reply)["events"]]


# --- Schedulers ----------------------------------------------------------------------------------------------


@pytest.fixture
def scheduler(tmp_path: Path):
    """Writes a scheduler whose `onJobSubmission` is the given line; gives its agent after SIMULATION_BEGINS."""

    def make(line: str, options: dict[str, Any] | None = None) -> PybatsimAgent:
        file = tmp_path / "mine.py"
        file.write_text(
            "import sys\nfrom batsim.batsim import BatsimScheduler\nfrom procset import ProcSet\n"
            f"class Mine(BatsimScheduler):\n    def onJobSubmission(self, job):\n        {line}\n"
        )
        agent = PybatsimAgent(f"pybatsim:{file}:Mine", options)
        agent.handle(begins(4))
        return agent

    return make


@needs_pybatsim
def test_each_message_gets_one_reply_and_the_last_ends_it() -> None:
    agent = PybatsimAgent(FILLER)
    assert json.loads(agent.handle(begins(4))) == {"now": 0.0, "events": []}
    assert decisions(agent.handle(message(1.0, submitted("w0!1", 3)))) == [("w0!1", "0-2")]
    assert decisions(agent.handle(message(2.0, submitted("w0!2", 2)))) == []
    assert decisions(agent.handle(message(6.0, completed("w0!1", "0-2")))) == [("w0!2", "0-1")]
    assert not agent.finished
    agent.handle(message(12.0, completed("w0!2", "0-1"), ("SIMULATION_ENDS", {})))
    assert agent.finished


@needs_pybatsim
def test_time_that_the_scheduler_takes_is_in_its_reply() -> None:
    agent = PybatsimAgent(FILLER)  # takes 5 ms per event
    agent.handle(begins(4))
    reply = json.loads(agent.handle(message(1.0, submitted("w0!1", 1), submitted("w0!2", 1))))
    assert reply["now"] == pytest.approx(1.010)
    assert [event["timestamp"] for event in reply["events"]] == pytest.approx([1.005, 1.010])


@needs_pybatsim
def test_two_agents_do_not_mix() -> None:
    one, other = PybatsimAgent(FILLER), PybatsimAgent(FILLER)
    one.handle(begins(1))
    other.handle(begins(8))
    assert decisions(one.handle(message(1.0, submitted("w0!1", 1)))) == [("w0!1", "0")]
    assert decisions(other.handle(message(1.0, submitted("w0!1", 8)))) == [("w0!1", "0-7")]


@needs_pybatsim
def test_pybatsim_has_its_own_network_back() -> None:
    import batsim.batsim
    import batsim.network

    PybatsimAgent(FILLER).handle(begins(4))
    assert batsim.batsim.NetworkHandler is batsim.network.NetworkHandler


@needs_pybatsim
def test_what_a_scheduler_prints_goes_to_the_log(scheduler, capsys, caplog) -> None:
    caplog.set_level(logging.DEBUG, "decision.batsim.pybatsim")
    agent = scheduler("print('got', job.id); print('again')")
    agent.handle(message(1.0, submitted("w0!1", 1)))
    assert capsys.readouterr().out == ""
    assert [record.message for record in caplog.records if record.name.startswith("decision")] == ["got w0!1", "again"]


@needs_pybatsim
@pytest.mark.parametrize(
    ("given", "received"), [("2", 2), ("2.5", 2.5), ("true", True), ("sjf", "sjf"), ('{"a": [1]}', {"a": [1]}), (7, 7)]
)
def test_an_option_that_is_json_arrives_as_its_value(scheduler, given: Any, received: Any) -> None:
    agent = scheduler("assert self.options == {'o': " + repr(received) + "}, self.options", {"o": given})
    agent.handle(message(1.0, submitted("w0!1", 1)))


@needs_pybatsim
def test_a_file_may_import_the_modules_beside_it(tmp_path: Path) -> None:
    (tmp_path / "beside_it.py").write_text("from schedulers.fillerSched import FillerSched\n")
    (tmp_path / "mine.py").write_text("from beside_it import FillerSched\n")
    before = list(sys.path)
    PybatsimAgent(f"pybatsim:{tmp_path / 'mine.py'}:FillerSched")
    assert sys.path == before


@needs_pybatsim
def test_a_function_of_the_second_interface_schedules(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())  # it logs there
    agent = PybatsimAgent("pybatsim:schedulers.schedFcfs:SchedFcfs", {"export-prefix": str(tmp_path / "out")})
    agent.handle(begins(4))
    assert decisions(agent.handle(message(1.0, submitted("w0!1", 3), submitted("w0!2", 2)))) == [("w0!1", "0-2")]


# --- A scheduler's faults ------------------------------------------------------------------------------------


@needs_pybatsim
@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("raise KeyError('nodes')", r"failed: KeyError: 'nodes' \(in onJobSubmission, mine.py:6\)"),
        ("sys.exit('cannot go on')", r"failed: SystemExit: cannot go on \(in onJobSubmission, mine.py:6\)"),
        ("self.bs.reject_jobs([])", "failed: AssertionError: The list of jobs to reject is empty"),
        ("self.bs.wake_me_up_at(float('inf'))", "failed: ValueError: Out of range float values"),
        ("self.bs.notify_resources_added(ProcSet(1))", "sent a command that Batsim does not know: .*RESOURCES_ADDED"),
        ("job.id = 'w0!9'; self.bs.reject_jobs_by_id([job.id])", "failed: KeyError: 'w0!9'"),
        ("self.bs.reject_jobs([job, job])", "decided something impossible: .*w0!1"),
        ("job.allocation = ProcSet((0, 1)); self.bs.execute_job(job)", "w0!2 is to start on host 0, where w0!1 runs"),
    ],
)
def test_a_scheduler_that_fails_is_named_with_time_and_cause(scheduler, line: str, told: str) -> None:
    agent = scheduler(line)
    with pytest.raises(PolicyError, match=rf"^t=7.5 s: pybatsim:\S*mine.py:Mine .*{told}") as caught:
        agent.handle(message(7.5, submitted("w0!1", 1), submitted("w0!2", 1)))
    assert caught.value.__cause__ is not None


@needs_pybatsim
def test_an_event_without_a_handler_is_named() -> None:
    agent = PybatsimAgent(FILLER)
    agent.handle(begins(4))
    with pytest.raises(PolicyError, match=r"NotImplementedError \(in onNotifyEventMachineUnavailable"):
        agent.handle(message(1.0, ("NOTIFY", {"type": "event_machine_unavailable", "resources": "1"})))


@needs_pybatsim
def test_ctrl_c_is_not_the_schedulers_fault(scheduler) -> None:
    agent = scheduler("raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        agent.handle(message(1.0, submitted("w0!1", 1)))


@needs_pybatsim
def test_nonsense_from_the_peer_is_the_peers_fault() -> None:
    with pytest.raises(RemoteProtocolError):
        PybatsimAgent(FILLER).handle(b'{"now": 1')
    with pytest.raises(RemoteProtocolError, match="does not begin with SIMULATION_BEGINS"):
        PybatsimAgent(FILLER).handle(message(1.0, submitted("w0!1", 1)))


# --- The user's mistakes -------------------------------------------------------------------------------------


def test_without_pybatsim_the_error_says_what_to_install(monkeypatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "batsim"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "batsim", None)
    with pytest.raises(ConfigError, match=r"pip install --no-deps pybatsim==3\.2\.1") as caught:
        PybatsimAgent(FILLER)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("spec", ["pybatsim:", "pybatsim:schedulers.fillerSched", "pybatsim::X", "pybatsim:m:"])
def test_a_spec_needs_a_module_and_a_class(spec: str) -> None:
    with pytest.raises(ConfigError, match="write pybatsim:module:Class"):
        PybatsimAgent(spec)


@needs_pybatsim
@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (
            "schedulers.easyBackfil:EasyBackfill",
            "module 'schedulers.easyBackfil' not found; did you mean 'schedulers.easyBa",
        ),
        ("schedulers.easyBackfill:EasyBackfil", "has no 'EasyBackfil'; did you mean 'EasyBackfill'"),
        ("no_such_package.mod:X", "module 'no_such_package' not found; install it or name its file"),
        ("batsim.batsim:Batsim", "does not derive from pybatsim's batsim.batsim.BatsimScheduler"),
        ("schedulers.easyBackfill:INFINITY", "does not derive from pybatsim's batsim.batsim.BatsimScheduler"),
        ("schedulers.schedBebida:SchedBebida", "making it with options {} failed: KeyError: 'variant'"),
        ("./no_such_file.py:X", "file 'no_such_file.py' not found"),
    ],
)
def test_a_wrong_spec_is_one_clear_line(spec: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        PybatsimAgent(f"pybatsim:{spec}")
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@needs_pybatsim
@pytest.mark.parametrize(
    ("text", "told"),
    [("def broken(:\n", "SyntaxError"), ("import no_such_module_here\n", "No module named 'no_such_module_here'")],
)
def test_a_file_that_cannot_be_imported_is_one_clear_line(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(text)
    with pytest.raises(ConfigError, match=told) as caught:
        PybatsimAgent(f"pybatsim:{file}:Mine")
    assert "\n" not in str(caught.value)
