"""Impossible commands and unusable inputs: one clear line each, with the time, the job and the hosts."""

import pytest
from helpers.reference_toys import (
    become,
    call,
    full,
    hosts,
    job,
    kill,
    label,
    notify,
    powered,
    query,
    register_job,
    register_profile,
    reject,
    run,
    start,
    switch,
    workload,
)

from decision.engine.reference.engine import ReferenceEngine
from decision.engine.rules import EngineOptions
from decision.model.errors import ConfigError, PolicyError
from decision.model.platform import PowerState, SleepState
from decision.model.workload import Delay, Foreign, MachineEvent, Parallel, ParallelHomogeneousTotal
from decision.protocol import Message
from decision.protocol.messages import AdditionalIoJob, ExecuteJob, ExecuteJobData, QueryData, Requests

AWAKE, ASLEEP, WAY = PowerState(1.0, 1.0, 1.0, 1.0), PowerState(0.1, 1.0, 1.0, 1.0), PowerState(0.5, 1.0, 1.0, 1.0)
SLEEP = SleepState(pstate=1, switch_off=2, switch_on=3)
IO = AdditionalIoJob("0", "io")


def refusal(*commands, late=(), **options):
    """The error that these commands meet at 5 s, when jobs a (2 hosts) and b (1 host) arrive; `late` come at 9 s."""
    work = workload(job("a", "p", 5.0, size=2), job("b", "p", 5.0), p=Delay(100.0))
    script = {"begins": [call(9.0)], "b arrives": commands, "call 9": late}
    platform = powered(*[(AWAKE, ASLEEP, WAY, WAY)] * 3, sleep=[SLEEP]) if options.get("energy") else hosts(1, 1, 1)
    with pytest.raises(PolicyError) as error:
        run(platform, work, script, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    ("commands", "says"),
    [
        ([start("x", "0")], "there is no job w0!x"),
        ([start("a", "0-2")], "w0!a needs 2 hosts, 3 given"),
        ([start("a", "0")], "w0!a needs 2 hosts, 1 given"),
        ([start("a", "")], "w0!a: no hosts given"),
        ([start("a", "1-2 9")], "w0!a: host set '1-2 9': there is no host 9, the last one is 2"),
        ([start("a", "0-99999999999")], "there is no host 99999999999, the last one is 2"),
        ([start("a", "2-1")], "w0!a: host set '2-1': the interval '2-1' runs backwards"),
        ([start("a", "0-1", mapping={"0": "0"})], "w0!a needs 2 executors, 1 given"),
        ([start("a", "0-1", mapping={"0": "0", "2": "1"})], "w0!a: its mapping must put executors 0 to n-1"),
        ([start("a", "0-1", mapping={"0": "0", "1": "2"})], "on places 0 to 1 of its allocation"),
        ([start("a", "0-1", mapping={"0": "0", "1": "-1"})], "on places 0 to 1 of its allocation"),
        ([start("a", "0-1", mapping={"0": "here", "1": "1"})], "on places 0 to 1 of its allocation"),
        ([start("a", "0-1"), start("b", "1")], "w0!b cannot start on hosts 1: host 1 computes w0!a"),
        ([start("b", "0"), start("b", "1")], "w0!b cannot start: it is running"),
        ([reject("b"), start("b", "0")], "w0!b cannot start: it is ended"),
        ([start("b", "0"), reject("b")], "w0!b cannot be rejected: it is running"),
        ([start("b", "0", additional_io_job=IO)], "w0!b: additional_io_job needs a network and storage; run"),
        ([kill("b")], "w0!b cannot be killed: it was never executed"),
        ([reject("b"), kill("b")], "w0!b cannot be killed: it was never executed"),
        ([call(5.0)], "asked to be called at t=5 s, which is past"),
        ([call(4.0)], "asked to be called at t=4 s, which is past"),
        ([label("b", 'say "hi"')], "w0!b: metadata must not contain a double quote"),
        ([notify("lunch")], "Batsim knows no notification 'lunch'"),
        ([query()], "QUERY of consumed_energy needs the energy simulation; enable it"),
        ([QueryData(Requests())], "QUERY: Batsim answers only consumed_energy"),
        ([switch("0", 0)], "SET_RESOURCE_STATE needs the energy simulation; enable it"),
        ([register_job("w0!c", "p")], "w0!c cannot be registered: dynamic jobs are not enabled"),
        ([become("b", "COMPLETED_FAILED")], "w0!b is submitted and cannot become 'COMPLETED_FAILED'"),
        ([become("b", "RUNNING"), become("b", "RUNNING")], "w0!b is running and cannot become 'RUNNING'"),
        ([become("b", "RUNNING"), kill("b")], "w0!b cannot be killed: it was never executed"),
        ([start("b", "0"), become("b", "COMPLETED_FAILED")], "w0!b was executed on hosts 0; kill it instead"),
    ],
)
def test_an_impossible_command_is_refused(commands, says):
    assert refusal(*commands).startswith("t=5 s: ")
    assert says in refusal(*commands)


@pytest.mark.parametrize(
    ("commands", "late", "says"),
    [
        ([switch("0", 9)], [], "host 0 cannot go to pstate 9: it has pstates 0 to 3"),
        ([switch("0", 2)], [], "host 0 cannot go to pstate 2: that pstate only models a switch"),
        ([switch("0-1", 1), switch("1", 0)], [], "host 1 cannot go to pstate 0: it is switching off"),
        ([switch("0", 1)], [switch("0", 1)], "host 0 cannot go to pstate 1: it sleeps in pstate 1; wake it first"),
        ([start("b", "0"), switch("0", 1)], [], "host 0 cannot go to pstate 1: it computes w0!b"),
        ([switch("0", 1)], [start("b", "0")], "w0!b cannot start on hosts 0: host 0 is sleeping"),
        ([switch("0", 1), start("b", "0")], [], "w0!b cannot start on hosts 0: host 0 is switching off"),
        ([switch("7", 1)], [], "SET_RESOURCE_STATE: host set '7': there is no host 7"),
    ],
)
def test_an_impossible_change_of_pstate_is_refused(commands, late, says):
    assert says in refusal(*commands, late=late, energy=True)


@pytest.mark.parametrize(
    ("commands", "says"),
    [
        ([register_job("dyn!c", "p")], "dyn!c: there is no workload 'dyn'; register a profile of it first"),
        ([register_job("w0!c", "x")], "w0!c: workload 'w0' has no profile 'x'"),
        ([register_job("w0!b", "p")], "job w0!b exists already"),
        ([register_job("w0!c", "p", id="d")], "w0!c: its description has id 'd'"),
        ([register_job("w0!c", "p", walltime=-5)], "w0!c: walltime -5 must be above 0, or -1 for none"),
        ([register_profile("w0", "p", type="delay", delay=1)], "profile 'p' of 'w0' exists already"),
        ([register_profile("w0", "q", type="delay", delay=0)], "profile 'q' of 'w0': Expected `float` > 0.0"),
        (
            [register_profile("w0", "q", type="composed", seq=["p", "z"])],
            "profile 'q' of 'w0': there is no profile 'z'",
        ),
        (
            [notify("registration_finished"), register_job("w0!c", "p")],
            "cannot be registered after registration_finished",
        ),
        (
            [register_profile("w0", "q", type="parallel_homogeneous", cpu=1, com=5), register_job("w0!c", "q")],
            "w0!c: w0: profile 'q' has communication (com = 5 bytes)",
        ),
    ],
)
def test_an_impossible_registration_is_refused(commands, says):
    assert says in refusal(*commands, dynamic_jobs=True)


def test_a_job_whose_end_was_told_is_no_longer_known():
    work = workload(job("a", "p"), p=Delay(1.0))
    with pytest.raises(PolicyError, match=r"t=1 s: w0!a has ended already"):
        run(hosts(1.0), work, {"a arrives": [start("a", "0")], "a done": [label("a", "x")]})


def test_a_profile_is_forgotten_with_the_job_that_had_it_unless_it_is_to_be_reused():
    work = workload(job("a", "p"), p=Delay(1.0))
    script = {
        "a arrives": [start("a", "0")],
        "a done": [register_job("w0!b", "p"), start("b", "0"), notify("registration_finished")],
    }
    with pytest.raises(PolicyError, match=r"t=1 s: w0!b: Batsim forgot profile 'p' .* enable profile reuse"):
        run(hosts(1.0), work, script, dynamic_jobs=True)
    assert run(hosts(1.0), work, script, dynamic_jobs=True, profile_reuse=True).told[-1] == (2.0, "b done")


def test_a_host_that_is_away_runs_nothing():
    away = [MachineEvent(timestamp=1.0, type="machine_unavailable", hosts=(0,))]
    with pytest.raises(PolicyError, match=r"t=5 s: w0!a cannot start on hosts 0: host 0 is unavailable"):
        run(hosts(1.0), workload(job("a", "p", 5.0), p=Delay(1.0)), {"a arrives": [start("a", "0")]}, away)


def test_a_command_after_its_replys_now_is_refused():
    engine = ReferenceEngine(hosts(1.0), [workload()])
    engine.ask()
    engine.answer(Message(1.0, (ExecuteJob(2.0, ExecuteJobData(full("a"), "0")),)))
    with pytest.raises(PolicyError, match=r"ExecuteJob is for t=2 s, after the reply's now=1 s"):
        engine.ask()


# --- Inputs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "says"),
    [
        (("machine_available", (0,)), "host 0 is not unavailable; correct the events"),
        (("machine_unavailable", (5,)), "there is no host 5; correct the events"),
    ],
)
def test_an_impossible_external_event_is_named(event, says):
    kind, ids = event
    with pytest.raises(ConfigError, match=rf"external event {kind} at t=3 s: {says}"):
        run(hosts(1.0), workload(), {}, [MachineEvent(timestamp=3.0, type=kind, hosts=ids)])


def test_a_host_cannot_leave_twice():
    events = [MachineEvent(timestamp=time, type="machine_unavailable", hosts=(0,)) for time in (1.0, 2.0)]
    with pytest.raises(ConfigError, match=r"t=2 s: host 0 is unavailable already"):
        run(hosts(1.0), workload(), {}, events)


@pytest.mark.parametrize(
    ("work", "events", "says"),
    [
        ([workload(job("a", "p"), p=Foreign("smpi", {}))], [], r"w0: profile 'p' has type 'smpi'.*run .* with Batsim"),
        ([workload(job("a", "p"), p=ParallelHomogeneousTotal(1.0, 8.0))], [], r"communication \(com = 8 bytes\)"),
        ([workload(job("a", "p"), p=Parallel((1.0, 2.0), (0.0,) * 4))], [], "for 2 hosts, but job w0!a requests 1"),
        ([workload(), workload()], [], "workloads w0, w0: two have the same name"),
        ([workload(job("w7!a", "p"), p=Delay(1.0))], [], "job w7!a: there is no workload 'w7'; ids are WORKLOAD!NAME"),
        ([workload(job("a", "p"), job("a", "p"), p=Delay(1.0))], [], "job w0!a exists already"),
        ([workload(job("a", "q"), p=Delay(1.0))], [], "w0: there is no profile 'q'; add it"),
        ([workload()], [MachineEvent(timestamp=0.0, type="tea")], "unknown type 'tea': forward unknown events"),
    ],
)
def test_what_the_engine_cannot_simulate_is_refused_before_it_begins(work, events, says):
    with pytest.raises(ConfigError, match=says):
        ReferenceEngine(hosts(1.0), work, events, EngineOptions())
