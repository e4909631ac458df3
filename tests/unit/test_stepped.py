"""`d.Simulation`: stepped from outside, copied, and the same in an external Batsim."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

import decision as d

STANDIN = str(Path(sys.executable).parent / "decision-batsim")
CASE, FEW = ("cluster256", "lublin_256"), slice(0, 60)


def greedy(sim, log):
    """The first jobs that fit, in order; all that is told goes into the log."""
    for event in ("job_submitted", "job_started", "job_completed", "job_killed"):
        sim.on(event, lambda sim, job, event=event: log.append((round(sim.now, 6), event, job.id)))
    sim.on("ended", lambda sim: log.append("ended"))
    while not sim.is_over:
        for job in sim.view.queue:
            if job.size <= sim.view.nb_free:
                sim.start(job)
        sim.step()


class Greedy:
    """The same as a policy."""

    def reset(self, platform, seed):
        pass

    def decide(self, cluster, plan):
        for job in cluster.queue:
            if job.size <= plan.nb_free:
                plan.start(job)


def test_stepping_makes_the_schedule_of_the_same_policy():
    """All columns of the record."""
    sim, log = d.Simulation(*CASE, jobs=FEW), []
    greedy(sim, log)
    record, same = sim.result().record.jobs, d.simulate(*CASE, Greedy(), jobs=FEW).record.jobs
    assert record.start_time.tolist() == same.start_time.tolist()
    assert list(record.allocation) == list(same.allocation)
    assert log[-1] == "ended"
    assert [event for _, event, _ in log[:-1]].count("job_submitted") == 60
    assert (sim.jobs.state != "QUEUED").all()
    assert len(sim.jobs) == 60


def test_an_external_batsim_tells_the_same_at_the_same_times():
    """The stand-in, over ZeroMQ."""
    logs, results = [], []
    for engine in ("embedded", "batsim"):
        with d.Simulation(*CASE, jobs=FEW, engine=engine, batsim=STANDIN) as sim:
            logs.append([])
            greedy(sim, logs[-1])
            results.append(sim.result().jobs)
    assert logs[0] == logs[1]
    assert results[0].start_time.tolist() == pytest.approx(results[1].start_time.tolist(), abs=1e-6)


def test_a_copy_has_a_future_of_its_own():
    """And the one that was copied the one that it would have had."""
    sim, plain = d.Simulation(*CASE, jobs=FEW), d.Simulation(*CASE, jobs=FEW)
    for each in (sim, plain):
        each.run_until(5000)
    before = sim.now, len(sim.view.queue), sim.view.free_hosts
    other = sim.copy()
    greedy(other, [])
    assert (sim.now, len(sim.view.queue), sim.view.free_hosts) == before
    assert other.is_over
    for each in (sim, plain):
        greedy(each, [])
    assert sim.result().jobs.start_time.tolist() == plain.result().jobs.start_time.tolist()
    assert other.result().jobs.start_time.tolist() == sim.result().jobs.start_time.tolist()


def test_a_thousand_jobs_are_copied_in_milliseconds():
    """`scripts/bench` has the figure."""
    sim = d.Simulation(*CASE, jobs=slice(0, 1000))
    sim.run_until(50_000)
    sim.copy()
    began = time.perf_counter()
    for _ in range(20):
        sim.copy()
    assert (time.perf_counter() - began) / 20 < 0.02


def test_what_was_asked_for_is_seen_at_once_and_time_passes_by_steps():
    """Started jobs have left the queue, calls come at their times, and kills stop jobs."""
    sim, seen = d.Simulation("toy", "toy"), []
    sim.at(2.5, lambda sim: seen.append(sim.now))
    sim.step()
    first = sim.view.queue[0]
    sim.start(first.id, range(first.size))
    assert first not in list(sim.view.queue)
    assert list(sim.view.running) == [first]
    assert sim.view.free_hosts == list(range(first.size, 4))
    sim.run_until(2.5)
    assert seen == [2.5]
    killed = []
    sim.on("job_killed", lambda sim, job: killed.append(job.id))
    sim.kill(first)
    sim.step()
    assert killed == [first.id]
    assert sim.jobs.set_index("id").state[first.id] == "COMPLETED_KILLED"
    assert repr(sim).startswith("<Simulation: stepped on toy, t=")


def test_hosts_are_switched_off_and_on():
    """With energy; each change is told."""
    sim, told = d.Simulation("taurus", "taurus_week", energy=True, jobs=slice(0, 5)), []
    sim.on("host_changed", lambda sim, host: told.append(host))
    sim.switch_off([3, 4])
    sim.run_until(sim.now + 1000)
    assert set(told) == {3, 4}
    told.clear()
    sim.switch_on([3])
    sim.run_until(sim.now + 1000)
    assert set(told) == {3}
    assert sim.view.power < d.Simulation("taurus", "taurus_week", energy=True).view.power


@pytest.mark.parametrize(
    ("do", "message"),
    [
        (lambda sim: sim.start("w0!9"), "job: 'w0!9' has not been submitted at t="),
        (lambda sim: sim.start(sim.view.queue[0], [0]), "needs 3 free hosts; 1 are named"),
        (lambda sim: (sim.start(0), sim.start(0)), "w0!1 does not wait"),
        (lambda sim: (sim.start(0), sim.start(1, [0])), "w0!2 needs 4 free hosts; host 0 is not free"),
        (lambda sim: (sim.kill(0), sim.step()), "w0!1"),
        (lambda sim: sim.on("anything", print), "event: must be one of job_submitted"),
        (lambda sim: sim.result(), "not over; step on"),
        (lambda sim: [sim.step() for _ in range(99)], "nothing can happen any more"),
        (lambda sim: d.Simulation("toy", "lublin_256"), "needs"),
        (lambda sim: d.Simulation("toy", "toy", engine="simgrid"), "engine: must be embedded or batsim"),
        (lambda sim: d.Simulation("toy", "toy", engine="batsim", batsim="no-such"), "no-such: command not found"),
        (lambda sim: d.Simulation("toy", "toy", engine="batsim", batsim=STANDIN).copy(), "cannot be copied"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(do, message):
    """When, what and why."""
    sim = d.Simulation("toy", "toy")
    sim.step()
    with pytest.raises(d.DecisionError) as error:
        do(sim)
    assert message in str(error.value)


STARTED = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import test_stepped, decision as d
test_stepped.greedy(d.Simulation("toy", "toy"), [])
test_stepped.greedy(d.Simulation("toy", "toy", engine="batsim", batsim={STANDIN!r}), [])
d.simulate("toy", "toy", test_stepped.Greedy())
print("numba" in sys.modules)
"""


def test_once_compiled_stepping_and_policies_in_python_start_without_numba():
    words = [sys.executable, "-c", STARTED]
    _, again = (subprocess.run(words, capture_output=True, text=True, check=True) for _ in range(2))
    assert again.stdout.split() == ["False"], "a kernel is called as such, and not by its address"
