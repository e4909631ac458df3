"""The reference engine's kernel: rounds, time, tasks and the mailbox."""

from functools import partial

import pytest
from helpers.reference_toys import host

from decision.engine.reference.kernel import (
    STEP,
    ActorKernel,
    Ask,
    Call,
    Get,
    ParallelTask,
    Put,
    Sleep,
    Wait,
    WaitResult,
)
from decision.engine.reference.machines import HostMachine, PlatformLinks
from decision.model.platform import Platform, PowerState


@pytest.fixture
def kernel():
    return ActorKernel(PlatformLinks(Platform(hosts=())))


@pytest.fixture
def log():
    return []


def run(kernel):
    for _ in kernel.run():
        pass


def machine(speed=1.0):
    return HostMachine(host(0, PowerState(speed, 0.0, 0.0, 100.0)), metered=True)


def test_actors_take_turns_round_by_round(kernel, log):
    def actor(name):
        for step in range(3):
            log.append(f"{name}{step}")
            yield STEP

    kernel.start(actor("a"))
    kernel.start(actor("b"))
    run(kernel)
    assert log == ["a0", "b0", "a1", "b1", "a2", "b2"]


def test_a_new_actor_runs_before_the_one_that_started_it(kernel, log):
    def child():
        log.append("child")
        yield STEP

    def parent():
        yield Call(partial(kernel.start, child()))
        log.append("parent")

    kernel.start(parent())
    run(kernel)
    assert log == ["child", "parent"]


def test_sleeps_that_end_together_wake_in_the_order_in_which_they_began(kernel, log):
    def sleeper(name, first, second):
        for seconds in (first, second):
            yield Sleep(seconds)
        log.append((kernel.now, name))

    kernel.start(sleeper("a", 2.0, 1.0))
    kernel.start(sleeper("b", 1.0, 2.0))
    kernel.start(sleeper("c", 1.5, 1.5))
    run(kernel)
    assert log == [(3.0, "b"), (3.0, "c"), (3.0, "a")]


def test_the_mailbox_is_a_queue_and_a_sender_waits_until_its_item_is_taken(kernel, log):
    def sender(name):
        yield Put(name)
        log.append(f"{name} taken")

    def reader():
        for _ in range(2):
            log.append((yield Get()))
            log.append(kernel.mailbox_empty)

    kernel.start(sender("a"))
    kernel.start(sender("b"))
    kernel.start(reader())
    run(kernel)
    assert log == ["a taken", "a", False, "b taken", "b", True]


def test_a_question_leaves_the_kernel_and_its_answer_comes_back(kernel, log):
    def actor():
        log.append((yield Ask("time?")))

    kernel.start(actor())
    questions = kernel.run()
    assert next(questions) == "time?"
    with pytest.raises(StopIteration):
        questions.send("noon")
    assert log == ["noon"]


@pytest.mark.parametrize(
    ("limit", "outcome", "end"),
    [
        (None, WaitResult.DONE, 4.0),
        (4.0, WaitResult.DONE, 4.0),
        (5.0, WaitResult.DONE, 4.0),
        (3.0, WaitResult.LATE, 3.0),
    ],
)
def test_a_task_is_done_or_late(kernel, log, limit, outcome, end):
    def actor():
        task = ParallelTask(work=[(machine(2.0), 8.0)])
        yield Call(partial(kernel.begin, task))
        log.append((yield Wait(task, limit)))
        log.append(kernel.now)
        yield Sleep(10.0)
        log.append(kernel.now)

    kernel.start(actor())
    run(kernel)
    assert log == [outcome, end, end + 10.0]


def test_a_cancelled_task_wakes_its_actor_and_lifts_its_limit(kernel, log):
    task = ParallelTask(work=[(machine(), 8.0)])

    def worker():
        yield Call(partial(kernel.begin, task))
        log.append((yield Wait(task, 20.0)))
        log.append(kernel.now)

    def canceller():
        yield Sleep(2.0)
        yield Call(partial(kernel.cancel, task))

    kernel.start(worker())
    kernel.start(canceller())
    run(kernel)
    assert log == [WaitResult.CANCELLED, 2.0]
    assert kernel.now == 2.0
    assert task.remains == 0.75


def test_a_killed_actor_never_wakes(kernel, log):
    def sleeper():
        yield Sleep(5.0)
        log.append("awake")

    def killer(victim):
        yield Sleep(1.0)
        yield Call(partial(kernel.kill, victim))

    kernel.start(killer(kernel.start(sleeper())))
    run(kernel)
    assert log == []
    assert kernel.now == 1.0


def test_a_machine_is_measured_before_its_load_changes(kernel):
    busy = machine(2.0)

    def actor():
        yield Sleep(3.0)
        task = ParallelTask(work=[(busy, 8.0)])
        busy.measure(kernel.now)
        yield Call(partial(kernel.begin, task))
        yield Wait(task, None)

    kernel.start(actor())
    run(kernel)
    assert (busy.joules, busy.measured_at) == (400.0, 7.0)
