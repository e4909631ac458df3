"""How long jobs run in the reference engine, how they end, and what is told of those that are killed."""

import math

import pytest
from helpers.reference_toys import become, call, hosts, job, kill, label, powered, reject, run, start, switch, workload
from helpers.reference_toys import told as told_of

from decision.engine.reference.engine import ReferenceEngine
from decision.model.platform import PowerState
from decision.model.record import FinalState
from decision.model.workload import Composed, Delay, Parallel, ParallelHomogeneous, ParallelHomogeneousTotal, Profile
from decision.protocol import Message
from decision.protocol.messages import ExecuteJob, KillJob, TaskProgress


def lone(profile: Profile, size: int = 1, walltime: float = math.inf, speeds=(1.0,), **others: Profile):
    """Run one job, started at 0 on the first hosts."""
    work = workload(job("a", "p", size=size, walltime=walltime), p=profile, **others)
    alloc = f"0-{size - 1}" if size > 1 else "0"
    return run(hosts(*speeds), work, {"a arrives": [start("a", alloc)]})


# --- Runtimes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "seconds"),
    [
        (Delay(7.0), 7.0),
        (ParallelHomogeneous(12.0, 0.0), 12.0),  # the slow host needs 12 s
        (ParallelHomogeneousTotal(12.0, 0.0), 6.0),  # 6 flop each
        (Parallel((6.0, 40.0), (0.0,) * 4), 10.0),  # 6 s on the slow host, 10 s on the fast one
        (Parallel((0.0, 40.0), (0.0,) * 4), 10.0),
    ],
)
def test_the_slowest_part_of_a_task_decides(profile, seconds):
    assert lone(profile, size=2, speeds=(1.0, 4.0)).told[1:] == [(seconds, "a done")]


def test_a_job_with_nothing_to_compute_takes_no_time_and_is_written_down_with_10_microseconds():
    told = lone(ParallelHomogeneous(0.0, 0.0))
    assert told.told == [(0.0, "a arrives"), (0.0, "a done")]
    assert told.record.jobs.runtime.tolist() == [1e-5]


def test_a_mapping_can_put_several_executors_on_one_host():
    """Three executors of 10 flop: two on host 0 (speed 1) take 20 s, one on host 1 (speed 2) takes 5 s."""
    work = workload(job("a", "p", size=3), p=ParallelHomogeneous(10.0, 0.0))
    on = start("a", "0-1", mapping={"0": "0", "1": "0", "2": "1"})
    assert run(hosts(1.0, 2.0), work, {"a arrives": [on]}).told[1:] == [(20.0, "a done")]


@pytest.mark.parametrize(("alloc", "seconds"), [("0", 12.0), ("0-1", 6.0), ("0-2", 4.0)])
def test_work_given_in_all_may_run_on_another_number_of_hosts(alloc, seconds):
    work = workload(job("a", "p", size=2), p=ParallelHomogeneousTotal(12.0, 0.0))
    told = run(hosts(1.0, 1.0, 1.0), work, {"a arrives": [start("a", alloc)]})
    assert told.told[1:] == [(seconds, "a done")]
    assert told.record.jobs.allocation == [alloc]


def test_a_sequence_of_such_work_may_too():
    work = workload(job("a", "p", size=2), p=Composed(("q", "q")), q=ParallelHomogeneousTotal(12.0, 0.0))
    assert run(hosts(1.0), work, {"a arrives": [start("a", "0")]}).told[1:] == [(24.0, "a done")]


# --- Walltimes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "walltime", "end"),
    [
        (Delay(10.0), 10.0, (10.0, "a overdue")),  # just as long: Batsim looks before it sleeps
        (Delay(10.0), 10.5, (10.0, "a done")),
        (Delay(10.0), 4.0, (4.0, "a overdue")),
        (ParallelHomogeneous(10.0, 0.0), 10.0, (10.0, "a done")),  # just as long: the task ends before its limit
        (ParallelHomogeneous(10.0, 0.0), 9.0, (9.0, "a overdue")),
        (ParallelHomogeneous(0.3, 0.0), 0.3, (0.3, "a done")),
    ],
)
def test_a_walltime_ends_what_is_longer(profile, walltime, end):
    told = lone(profile, walltime=walltime)
    assert told.told[1:] == [end]
    assert told.events[-2].data.return_code == (-1 if "overdue" in end[1] else 0)


def test_an_overdue_task_leaves_its_host_to_the_next_job():
    work = workload(job("a", "p", walltime=4.0), job("b", "p"), p=ParallelHomogeneous(10.0, 0.0))
    told = run(hosts(1.0), work, {"a arrives": [start("a", "0")], "a overdue": [start("b", "0")]})
    assert told.told[2:] == [(4.0, "a overdue"), (14.0, "b done")]


# --- Composed profiles ---------------------------------------------------------------------------------------


def test_a_composed_profile_runs_its_parts_in_turn_and_repeats_them():
    told = lone(Composed(("x", "y"), 2), speeds=(2.0,), x=Delay(5.0), y=ParallelHomogeneous(6.0, 0.0))
    assert told.told[1:] == [(16.0, "a done")]


def test_the_walltime_is_that_of_all_parts_together():
    told = lone(Composed(("x", "y")), walltime=12.0, x=Delay(5.0), y=ParallelHomogeneous(8.0, 0.0))
    assert told.told[1:] == [(12.0, "a overdue")]


def test_nothing_follows_a_part_that_ends_exactly_at_the_walltime():
    told = lone(Composed(("x", "y")), walltime=5.0, x=ParallelHomogeneous(5.0, 0.0), y=Delay(1.0))
    assert told.told[1:] == [(5.0, "a overdue")]


def test_the_first_part_that_fails_ends_the_job_with_its_code():
    told = lone(Composed(("x", "bad", "x")), x=Delay(5.0), bad=Delay(1.0, exit_code=3))
    assert told.told[1:] == [(6.0, "a failed")]
    assert told.events[-2].data.return_code == 3


def test_a_composed_profile_can_fail_itself_after_its_parts():
    told = lone(Composed(("in", "x")), x=Delay(5.0), **{"in": Composed(("x", "x"), 1, exit_code=7)})
    assert told.told[1:] == [(10.0, "a failed")]
    assert told.events[-2].data.return_code == 7


# --- Kills ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "code", "progress"),
    [(Delay(16.0), -1, 0.25), (ParallelHomogeneous(10.0, 0.0), -2, 0.4), (Delay(30.0), -1, 0.133333)],
)
def test_a_kill_ends_a_job_and_tells_how_far_it_was(profile, code, progress):
    work = workload(job("a", "p"), p=profile)
    told = run(hosts(1.0), work, {"a arrives": [start("a", "0"), call(4.0)], "call 4": [kill("a")]})
    assert told.questions[-3:-1] == [(4.0, ["call 4"]), (4.0, ["a killed", "kill of a"])]
    assert told.events[-3].data.return_code == code
    assert told.progress == {"a": TaskProgress("p", progress=progress)}
    assert told.record.jobs.runtime.tolist() == [4.0]
    assert told.record.time_in_state.tolist() == [0, 0, 0, 0, 4, 0]


def test_the_progress_of_a_composed_job_names_the_way_to_its_task():
    """x takes 2 s: outer is x, (x, y), x, (x, y). At 9 s: outer's task 3, of which task 1, y, is at 1 of 4 s."""
    profiles = {"outer": Composed(("x", "inner"), 2), "inner": Composed(("x", "y")), "x": Delay(2.0)}
    work = workload(job("a", "outer"), y=ParallelHomogeneous(4.0, 0.0), **profiles)
    script = {"a arrives": [start("a", "0"), call(13.0)], "call 13": [kill("a")]}
    told = run(hosts(1.0), work, script)
    leaf = TaskProgress("y", progress=0.25)
    inner = TaskProgress("inner", current_task_index=1, current_task=leaf)
    assert told.progress == {"a": TaskProgress("outer", current_task_index=3, current_task=inner)}
    assert told.events[-3].data.return_code == -2


def test_a_job_that_ends_when_it_should_be_killed_is_named_but_not_killed():
    """The reply that starts it at 0 also kills it at 4, when it ends by itself and nobody has been told yet."""
    engine = ReferenceEngine(hosts(1.0), [workload(job("a", "p"), p=Delay(4.0))])
    engine.ask()
    engine.answer(Message(0.0, ()))
    engine.ask()
    engine.answer(Message(4.0, (ExecuteJob(0.0, start("a", "0")), KillJob(4.0, kill("a")))))
    done, killed = engine.ask().events[1:]
    assert told_of(done) == "a done"
    assert (killed.data.job_ids, killed.data.job_progress) == (("w0!a",), {})


def test_jobs_of_one_kill_are_told_of_together():
    work = workload(job("a", "p"), job("b", "q"), job("c", "p"), p=Delay(9.0), q=ParallelHomogeneous(9.0, 0.0))
    starts = {f"{name} arrives": [start(name, host)] for name, host in [("a", "0"), ("b", "1"), ("c", "2")]}
    told = run(hosts(1.0, 1.0, 1.0), work, starts | {"no more jobs": [call(3.0)], "call 3": [kill("b", "a")]})
    assert (3.0, ["b killed", "a killed", "kill of b a"]) in told.questions
    assert [FinalState(state).name for state in told.record.jobs.final_state] == [
        "COMPLETED_KILLED",
        "COMPLETED_KILLED",
        "COMPLETED_SUCCESSFULLY",
    ]


def test_a_second_kill_of_a_job_is_not_answered():
    work = workload(job("a", "p"), p=Delay(9.0))
    told = run(hosts(1.0), work, {"a arrives": [start("a", "0"), call(3.0)], "call 3": [kill("a", "a"), kill("a")]})
    assert [text for _, text in told.told] == ["a arrives", "call 3", "a killed", "kill of a"]


# --- What is written down ------------------------------------------------------------------------------------


def test_jobs_are_written_in_the_order_in_which_they_end():
    jobs = [job("a", "p"), job("b", "q", walltime=50.0), job("c", "p", size=9)]
    script = {"a arrives": [start("a", "0"), label("a", "long")], "b arrives": [start("b", "1")]}
    table = run(
        hosts(1.0, 1.0), workload(*jobs, p=Delay(9.0), q=Delay(2.0)), script | {"c arrives": [reject("c")]}
    ).record.jobs
    assert table.id == ["w0!c", "w0!b", "w0!a"]
    assert table.profile == ["p", "q", "p"]
    assert table.size.tolist() == [9, 1, 1]
    assert table.walltime.tolist() == [math.inf, 50.0, math.inf]
    assert table.allocation == ["", "1", "0"]
    assert table.metadata == ["", "", "long"]
    assert table.energy.tolist() == [-1.0, -1.0, -1.0]
    assert [math.isnan(value) for value in table.start_time] == [True, False, False]
    assert table.runtime.tolist()[1:] == [2.0, 9.0]


def test_host_states_are_written_at_each_start_and_end():
    jobs = [job("a", "p", size=2), job("b", "q", submit=1.0)]
    script = {"a arrives": [start("a", "0-1")], "b arrives": [start("b", "2")]}
    told = run(hosts(1.0, 1.0, 1.0), workload(*jobs, p=Delay(9.0), q=Delay(3.0)), script)
    assert told.record.host_states.time.tolist() == [0.0, 1.0, 4.0, 9.0]
    assert told.record.host_states.counts[:, 3:5].tolist() == [[1, 2], [0, 3], [1, 2], [3, 0]]
    untraced = run(hosts(1.0, 1.0, 1.0), workload(*jobs, p=Delay(9.0), q=Delay(3.0)), script, trace=False)
    assert len(untraced.record.host_states.time) == 0


# --- CHANGE_JOB_STATE ----------------------------------------------------------------------------------------


def test_a_policy_can_say_itself_how_a_job_fares():
    """For jobs that run elsewhere: no host is involved, and nothing is told back."""
    work = workload(job("a", "p"), job("b", "p"), p=Delay(1.0))
    script = {
        "a arrives": [become("a", "RUNNING"), call(6.0)],
        "b arrives": [become("b", "REJECTED")],
        "call 6": [become("a", "COMPLETED_FAILED")],
    }
    told = run(hosts(1.0), work, script)
    assert told.told == [(0.0, "a arrives"), (0.0, "b arrives"), (6.0, "call 6")]
    assert told.record.jobs.id == ["w0!b", "w0!a"]
    assert told.record.jobs.final_state.tolist() == [FinalState.REJECTED, FinalState.COMPLETED_FAILED]
    assert told.record.jobs.runtime.tolist()[1] == 6.0


# --- Changes of speed ----------------------------------------------------------------------------------------

FAST, SLOW = PowerState(4.0, 10.0, 10.0, 50.0), PowerState(1.0, 5.0, 5.0, 20.0)


@pytest.mark.parametrize(
    ("profile", "walltime", "end"),
    [
        (ParallelHomogeneous(40.0, 0.0), math.inf, (25.0, "a done")),  # 20 flop in 5 s, the other 20 in 20 s
        (ParallelHomogeneous(40.0, 0.0), 24.0, (24.0, "a overdue")),
        (Delay(10.0), math.inf, (10.0, "a done")),
    ],
)
def test_a_task_goes_on_at_the_speed_of_a_new_pstate(profile, walltime, end):
    work = workload(job("a", "p", size=2, walltime=walltime), p=profile)
    script = {"a arrives": [start("a", "0-1"), call(5.0)], "call 5": [switch("1", 1)]}
    told = run(powered((FAST, SLOW), (FAST, SLOW)), work, script, energy=True)
    assert told.told[1:] == [(5.0, "call 5"), (5.0, "hosts 1 in 1"), end]


def test_the_next_task_starts_in_the_present_pstate():
    work = workload(job("a", "p"), p=ParallelHomogeneous(40.0, 0.0))
    told = run(powered((FAST, SLOW)), work, {"a arrives": [switch("0", 1), start("a", "0")]}, energy=True)
    assert told.told[1:] == [(0.0, "hosts 0 in 1"), (40.0, "a done")]
