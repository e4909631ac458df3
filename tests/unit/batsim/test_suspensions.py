"""What the agent says to Batsim when jobs are suspended, and what it refuses."""

from typing import Any

import pytest
from helpers.green_worlds import BY_MESSAGES, Restless, platform, supply, workload

from decision.batsim.agent import make_agent
from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.rules import EngineOptions
from decision.model.errors import ConfigError, PolicyError
from decision.model.workload import Composed, Delay, Job, MachineEvent, Workload, Worth
from decision.protocol import Connection, Role
from decision.protocol import messages as m


def converse(policy: str, jobs: Workload, events=(), options: EngineOptions = BY_MESSAGES) -> list[tuple[Any, Any]]:
    """All questions and replies of a run."""
    engine, batsim, agent = EmbeddedEngine(platform(), [jobs], events, options), Connection(Role.BATSIM), None
    agent, said = make_agent(policy, {}, platform=platform()), []
    while (question := engine.ask()) is not None:
        reply = batsim.receive(agent.handle(batsim.send(question)))
        engine.answer(reply)
        said.append((question, reply))
    return said


def two_jobs() -> Workload:
    """The second takes all hosts from the first at 40 s."""
    jobs = [
        Job(id="w0!a", submit_time=0.0, size=8, walltime=150.0, profile="d100", worth=Worth(1.0)),
        Job(id="w0!b", submit_time=40.0, size=8, walltime=90.0, profile="d50", worth=Worth(9.0)),
    ]
    return Workload(name="w0", jobs=jobs, profiles={"d100": Delay(100.0), "d50": Delay(50.0)}, nb_res=8)


def test_what_is_left_is_registered_at_the_instant_of_the_kill_and_the_registration_ends_with_the_last_job() -> None:
    said = converse("hvf,suspend=value,restart=5", two_jobs())
    kill = next(at for at, (_, reply) in enumerate(said) if any(isinstance(e, m.KillJob) for e in reply.events))
    question, reply = said[kill + 1]
    assert said[kill][0].now == question.now == 40
    assert [type(event) for event in question.events[-2:]] == [m.JobCompleted, m.JobKilled]
    profile, job, start = reply.events
    assert profile.data == m.RegisterProfileData("w0", "a#1", {"type": "delay", "delay": 65.0})
    assert (job.data.job_id, job.data.job.subtime, job.data.job.walltime, job.data.job.res) == ("w0!a#1", 40, 115, 8)
    assert start.data.job_id == "w0!b"
    ends = [(q.now, e.data.type) for q, reply in said for e in reply.events if isinstance(e, m.Notify)]
    assert ends == [(155.0, "registration_finished")]


def test_what_is_left_ends_with_the_exit_code_of_the_whole() -> None:
    jobs = two_jobs()
    jobs.profiles["d100"] = Delay(100.0, exit_code=3)
    said = converse("hvf,suspend=value", jobs)
    data = [event.data for _, reply in said for event in reply.events if isinstance(event, m.RegisterProfile)]
    assert data == [m.RegisterProfileData("w0", "a#1", {"type": "delay", "delay": 60.0, "ret": 3})]
    states = {e.data.job_id: e.data.job_state for q, _ in said for e in q.events if isinstance(e, m.JobCompleted)}
    assert (states["w0!a#1"], states["w0!b"]) == ("COMPLETED_FAILED", "COMPLETED_SUCCESSFULLY")


def test_a_job_that_ended_in_the_same_message_is_not_killed() -> None:
    jobs = two_jobs()
    jobs.jobs[1] = Job(id="w0!b", submit_time=100.0, size=8, walltime=90.0, profile="d50", worth=Worth(9.0))
    replies = [event for _, reply in converse("hvf,suspend=value", jobs) for event in reply.events]
    assert not [event for event in replies if isinstance(event, m.KillJob)]


def test_a_policy_that_never_suspends_ends_the_registration_at_once() -> None:
    said = converse("fcfs,beyond=grid", two_jobs())
    assert [event.data.type for event in said[0][1].events] == ["registration_finished"]


def test_what_happens_beyond_a_supply_may_be_said_where_there_is_none() -> None:
    assert converse("fcfs,beyond=grid", two_jobs(), (), EngineOptions())[-1][0].now == 150


@pytest.mark.parametrize(
    ("policy", "options", "message"),
    [
        ("hvf,suspend=value", EngineOptions(), "suspends jobs, .* start Batsim with --enable-dynamic-jobs"),
        (
            "fcfs",
            EngineOptions(forward_unknown_events=True),
            "t=0 s: .* suspends jobs beyond it; start Batsim with --enable-dynamic-jobs, or choose beyond=grid",
        ),
    ],
)
def test_the_option_that_batsim_lacks_is_named(policy: str, options: EngineOptions, message: str) -> None:
    events = supply(1) if options.forward_unknown_events else ()
    with pytest.raises(ConfigError, match=message):
        converse(policy, workload(1), events, options)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ('"hosts":-1', "field 'hosts': must be a whole number, 0 or more; found -1"),
        ('"hosts":9', "has 9 hosts, and the platform has 8; correct the events"),
        ('"forecast":[1]', "field 'hosts': must be a whole number, 0 or more; found None"),
    ],
)
def test_a_supply_that_makes_no_sense_is_refused(source: str, message: str) -> None:
    event = MachineEvent(
        timestamp=3.0, type="power_supply", hosts=(1,), source=f'{{"type":"power_supply",{source}}}'.encode()
    )
    with pytest.raises(ConfigError, match=rf"t=3 s: Batsim's event power_supply.*{message}"):
        converse("fcfs", two_jobs(), [event])


def test_a_job_that_cannot_be_cut_is_named_with_its_profile() -> None:
    jobs = two_jobs()
    jobs.jobs[0] = Job(id="w0!a", submit_time=0.0, size=8, profile="c", worth=Worth(1.0))
    jobs = Workload(name="w0", jobs=jobs.jobs, profiles={**jobs.profiles, "c": Composed(("d100",), 2)}, nb_res=8)
    with pytest.raises(PolicyError, match="w0!a cannot be suspended: its profile 'c' is not a delay"):
        converse("hvf,suspend=value", jobs)


def test_a_policy_in_python_that_suspends_without_dynamic_jobs_is_told_what_it_needs() -> None:
    assert Restless.suspends
    with pytest.raises(ConfigError, match=r"policy .*Restless suspends jobs.*--enable-dynamic-jobs"):
        converse("helpers.green_worlds:Restless", two_jobs(), (), EngineOptions())


@pytest.mark.parametrize(
    ("worth", "policy", "message"),
    [
        (Worth(qos=101.0), "fcfs", "job w0!a, field 'qos': must be above 0 and at most 100 percent; found 101"),
        (Worth(value=1.0), "qos", "job w0!a has no 'qos', and policy qos needs one"),
        (None, "density", "job w0!a has no 'value', and policy density needs one"),
    ],
)
def test_a_job_without_worth_or_with_nonsense_is_refused(worth, policy: str, message: str) -> None:
    jobs = [Job(id="w0!a", submit_time=0.0, size=1, walltime=150.0, profile="d", worth=worth)]
    with pytest.raises(ConfigError, match=message):
        converse(policy, Workload(name="w0", jobs=jobs, profiles={"d": Delay(9.0)}, nb_res=8))
