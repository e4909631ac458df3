"""When the reference engine asks, and what comes together in one question."""

import pytest
from helpers.reference_toys import call, hosts, job, kill, notify, register_job, register_profile, run, start, workload

from decision.engine.reference.engine import ReferenceEngine
from decision.model.errors import DeadlockError, LocalProtocolError
from decision.model.workload import Delay, MachineEvent, ParallelHomogeneous
from decision.protocol import Message
from decision.protocol.messages import CallMeLater, CallMeLaterData, ExecuteJob, ExecuteJobData


def test_a_job_is_told_of_started_and_told_of_again():
    told = run(hosts(1.0), workload(job("a", "p", submit=3.0), p=Delay(10.0)), {"a arrives": [start("a", "0")]})
    assert told.questions == [
        (0.0, ["begins"]),
        (3.0, ["a arrives"]),
        (3.0, ["no more jobs"]),
        (13.0, ["a done"]),
        (13.0, ["ends"]),
    ]


def test_jobs_of_one_instant_come_together_in_the_order_of_their_ids_as_text():
    jobs = [job(name, "p", submit=1.0) for name in ("9", "10", "1")]
    script = {f"{name} arrives": [start(name, host)] for name, host in [("1", "0"), ("10", "1"), ("9", "2")]}
    told = run(hosts(1.0, 1.0, 1.0), workload(*jobs, p=Delay(1.0)), script)
    assert told.questions[1] == (1.0, ["1 arrives", "10 arrives", "9 arrives"])


def test_jobs_at_time_0_wait_for_the_answer_to_the_beginning():
    told = run(hosts(1.0), workload(job("a", "p"), p=Delay(1.0)), {"a arrives": [start("a", "0")]})
    assert told.questions[:3] == [(0.0, ["begins"]), (0.0, ["a arrives"]), (0.0, ["no more jobs"])]


def test_the_end_of_submissions_joins_what_else_happens_then():
    """The completion stands in the mailbox when the submitter says goodbye, so all three come in one question."""
    work = workload(job("a", "p"), job("b", "p", submit=10.0), p=Delay(10.0))
    told = run(hosts(1.0), work, {"a arrives": [start("a", "0")], "b arrives": [start("b", "0")]})
    assert told.questions[2] == (10.0, ["b arrives", "a done", "no more jobs"])


def test_a_second_workload_is_submitted_beside_the_first():
    works = [
        workload(job("a", "p", submit=1.0), p=Delay(1.0)),
        workload(job("w1!b", "p", submit=1.0), job("w1!c", "p", submit=4.0), name="w1", p=Delay(2.0)),
    ]
    script = {
        "a arrives": [start("a", "0")],
        "w1!b arrives": [start("w1!b", "1")],
        "w1!c arrives": [start("w1!c", "0")],
    }
    told = run(hosts(1.0, 1.0), works, script)
    assert told.questions[1:] == [
        (1.0, ["a arrives", "w1!b arrives"]),
        (2.0, ["a done"]),
        (3.0, ["w1!b done"]),
        (4.0, ["w1!c arrives"]),
        (4.0, ["no more jobs"]),
        (6.0, ["w1!c done"]),
        (6.0, ["ends"]),
    ]


@pytest.mark.parametrize("first", ["job", "call"])
def test_what_began_first_is_told_first(first):
    commands = [start("a", "0"), call(10.0)]
    work = workload(job("a", "p"), p=Delay(10.0))
    told = run(hosts(1.0), work, {"a arrives": commands if first == "job" else commands[::-1]})
    together = ["a done", "call 10"] if first == "job" else ["call 10", "a done"]
    assert told.questions[3] == (10.0, together)


def test_times_closer_than_simgrids_precision_are_one_instant():
    work = workload(job("a", "p"), job("b", "q"), p=Delay(10.0), q=Delay(10.0 + 5e-10))
    told = run(hosts(1.0, 1.0), work, {"a arrives": [start("a", "0")], "b arrives": [start("b", "1")]})
    assert (10.0, ["a done", "b done"]) in told.questions


def test_times_farther_apart_are_two():
    work = workload(job("a", "p"), job("b", "q"), p=Delay(10.0), q=Delay(10.0 + 1e-6))
    told = run(hosts(1.0, 1.0), work, {"a arrives": [start("a", "0")], "b arrives": [start("b", "1")]})
    assert told.questions[3:5] == [(10.0, ["a done"]), (10.000001, ["b done"])]


def test_a_call_keeps_the_simulation_going():
    told = run(hosts(1.0), workload(), {"begins": [call(7.0)]})
    assert told.questions == [(0.0, ["begins"]), (0.0, ["no more jobs"]), (7.0, ["call 7"]), (7.0, ["ends"])]


def test_a_call_comes_no_sooner_than_10_microseconds():
    told = run(hosts(1.0), workload(), {"begins": [call(1e-7)]})
    assert told.questions[2] == (1e-05, ["call 1e-05"])


def test_nothing_to_do_ends_at_once():
    told = run(hosts(1.0), workload(), {})
    assert told.questions == [(0.0, ["begins"]), (0.0, ["no more jobs"]), (0.0, ["ends"])]
    assert told.record.jobs.id == []


# --- Replies in their own time -------------------------------------------------------------------------------


def late_engine() -> ReferenceEngine:
    jobs = [job("a", "p"), job("b", "p", submit=1.0), job("c", "p", submit=2.5)]
    return ReferenceEngine(hosts(1.0, 1.0, 1.0), [workload(*jobs, p=Delay(0.5))])


def test_commands_of_a_late_reply_are_done_at_their_own_times():
    """Asked at 0, the reply takes until 3 and starts a at 2; what happens meanwhile comes in one question at 3."""
    engine = late_engine()
    engine.ask()
    engine.answer(Message(0.0, ()))
    assert [type(event).__name__ for event in engine.ask().events] == ["JobSubmitted"]
    engine.answer(Message(3.0, (ExecuteJob(2.0, ExecuteJobData("w0!a", "0")),)))
    question = engine.ask()
    assert question.now == 3.0
    assert [(event.timestamp, type(event).__name__) for event in question.events] == [
        (1.0, "JobSubmitted"),
        (2.5, "JobSubmitted"),  # waited for since 1, the end of a only since 2
        (2.5, "JobCompleted"),
        (2.5, "Notify"),
    ]


def test_a_reply_dated_before_its_question_counts_as_of_now():
    engine = late_engine()
    engine.ask()
    engine.answer(Message(0.0, ()))
    engine.ask()
    engine.answer(Message(0.0, ()))
    assert engine.ask().now == 1.0
    engine.answer(Message(0.2, (ExecuteJob(0.1, ExecuteJobData("w0!a", "0")),)))
    done = engine.ask()
    assert (done.now, type(done.events[0]).__name__) == (1.5, "JobCompleted")


def test_times_are_told_with_six_decimals_and_an_echo_of_them_counts():
    """Batsim tells 0.1234567 s as 0.123457 s; a start for that time happens then, a third of a microsecond later."""
    work = workload(job("a", "p", submit=0.1234567), p=Delay(1.0))
    told = run(hosts(1.0), work, {"a arrives": [start("a", "0")]})
    assert told.questions[1] == (0.123457, ["a arrives"])
    assert told.record.jobs.start_time[0] == pytest.approx(0.123457, abs=1e-12)


# --- External events -----------------------------------------------------------------------------------------


def test_hosts_leave_and_return_and_their_job_goes_on():
    """Job a runs on host 0 from 0 to 10; the host is away from 4 to 12, so it is not idle at 10 but at 12."""
    events = [
        MachineEvent(timestamp=12.0, type="machine_available", hosts=(0,)),
        MachineEvent(timestamp=4.0, type="machine_unavailable", hosts=(0,)),
    ]
    work = workload(job("a", "p"), p=Delay(10.0))
    told = run(hosts(1.0, 1.0), work, {"a arrives": [start("a", "0")]}, events)
    assert told.questions[2:] == [
        (0.0, ["no more jobs"]),
        (4.0, ["event_machine_unavailable 0"]),
        (10.0, ["a done"]),
        (12.0, ["event_machine_available 0"]),
        (12.0, ["no more events"]),
        (12.0, ["ends"]),
    ]
    sleeping, on, off, idle, computing, away = told.record.time_in_state
    assert (sleeping, on, off) == (0.0, 0.0, 0.0)
    assert (idle, computing, away) == (0.0, 4.0, 8.0)  # host 1 never changes state, so Batsim does not count it
    assert told.record.host_states.counts.tolist() == [[0, 0, 0, 1, 1, 0], [0, 0, 0, 1, 0, 1]]


def test_a_host_that_returns_to_its_running_job_computes():
    events = [
        MachineEvent(timestamp=2.0, type="machine_unavailable", hosts=(0, 1)),
        MachineEvent(timestamp=5.0, type="machine_available", hosts=(0, 1)),
    ]
    work = workload(job("a", "p"), p=Delay(10.0))
    told = run(hosts(1.0, 1.0), work, {"a arrives": [start("a", "0")]}, events)
    assert (5.0, "event_machine_available 0-1") in told.told
    assert told.record.time_in_state.tolist() == [0.0, 0.0, 0.0, 2.0, 7.0, 6.0]


def test_events_of_one_instant_come_available_first_and_unknown_last():
    unknown = MachineEvent(timestamp=5.0, type="coffee", source=b'{"type":"coffee","timestamp":5,"cups":2}')
    events = [
        MachineEvent(timestamp=1.0, type="machine_unavailable", hosts=(1,)),
        unknown,
        MachineEvent(timestamp=5.0, type="machine_unavailable", hosts=(0,)),
        MachineEvent(timestamp=5.0, type="machine_available", hosts=(1,)),
    ]
    told = run(hosts(1.0, 1.0), workload(), {}, events, forward_unknown_events=True)
    at_5 = [texts for time, texts in told.questions if time == 5.0]
    assert at_5[0] == ["event_machine_available 1", "event_machine_unavailable 0", "coffee"]
    coffee = next(event for event in told.events if getattr(event.data, "type", "") == "coffee")
    assert coffee.data.fields == {"type": "coffee", "timestamp": 5, "cups": 2}


# --- Dynamic jobs --------------------------------------------------------------------------------------------

DYNAMIC = [register_profile("dyn", "p", type="delay", delay=2), register_job("dyn!x", "p")]


def test_a_registered_job_runs_like_any_other_and_the_run_waits_for_the_end_of_registration():
    script = {"begins": DYNAMIC, "dyn!x arrives": [start("dyn!x", "0"), notify("registration_finished")]}
    told = run(hosts(1.0), workload(), script, dynamic_jobs=True, acknowledge_dynamic_jobs=True)
    assert told.questions[1:] == [
        (0.0, ["no more jobs", "dyn!x arrives"]),  # the goodbye of w0 waits between the two commands
        (2.0, ["dyn!x done"]),
        (2.0, ["ends"]),
    ]


def test_without_acknowledgement_a_registered_job_can_be_started_at_once():
    script = {"begins": [*DYNAMIC, start("dyn!x", "0"), notify("registration_finished")]}
    told = run(hosts(1.0), workload(), script, dynamic_jobs=True)
    assert told.told == [(2.0, "dyn!x done")]


def test_registration_can_be_opened_again():
    again = [notify("continue_registration"), *DYNAMIC, start("dyn!x", "0"), notify("registration_finished")]
    script = {"begins": [notify("registration_finished"), call(1.0)], "call 1": again}
    told = run(hosts(1.0), workload(), script, dynamic_jobs=True)
    assert told.told == [(1.0, "call 1"), (3.0, "dyn!x done")]


# --- Ends and deadlocks --------------------------------------------------------------------------------------


def test_a_policy_that_never_starts_a_job_is_a_deadlock():
    jobs = [job(str(number), "p", submit=2.0) for number in range(7)]
    with pytest.raises(DeadlockError, match=r"t=2 s: .*w0!0, w0!1, w0!2, w0!3, w0!4 and 2 more wait; start or reject"):
        run(hosts(1.0), workload(*jobs, p=Delay(1.0)), {})


def test_a_registration_that_never_ends_is_a_deadlock():
    with pytest.raises(DeadlockError, match=r"t=0 s: .*registration_finished"):
        run(hosts(1.0), workload(), {}, dynamic_jobs=True)


def test_a_failed_engine_stays_failed():
    engine = ReferenceEngine(hosts(1.0), [workload(job("a", "p"), p=Delay(1.0))])
    for _ in range(3):
        engine.ask()
        engine.answer(Message(0.0, ()))
    for _ in range(2):
        with pytest.raises(DeadlockError):
            engine.ask()


def test_asking_and_answering_take_turns():
    engine = ReferenceEngine(hosts(1.0), [workload()])
    with pytest.raises(LocalProtocolError, match="without having asked"):
        engine.answer(Message(0.0, ()))
    engine.ask()
    with pytest.raises(LocalProtocolError, match="before its last question was answered"):
        engine.ask()
    with pytest.raises(LocalProtocolError, match="not over"):
        engine.record()


def test_two_equal_runs_are_equal():
    jobs = [job(f"{n}", "p" if n % 3 else "q", submit=float(n % 4), walltime=5.0) for n in range(12)]
    work = workload(*jobs, p=Delay(4.0), q=ParallelHomogeneous(6.0, 0.0))
    script = {f"{n} arrives": [start(f"{n}", str(n))] for n in range(12)} | {"2 done": [kill("3")]}
    runs = [run(hosts(*[1.0] * 12), work, script) for _ in range(2)]
    assert runs[0].questions == runs[1].questions


def test_commands_after_the_end_are_refused():
    engine = ReferenceEngine(hosts(1.0), [workload()])
    for _ in range(2):
        engine.ask()
        engine.answer(Message(0.0, ()))
    assert type(engine.ask().events[0]).__name__ == "SimulationEnds"
    engine.answer(Message(0.0, (CallMeLater(0.0, CallMeLaterData(5.0)),)))
    with pytest.raises(Exception, match="SIMULATION_ENDS"):
        engine.ask()
