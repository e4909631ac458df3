"""Random conversations between our two ends for Batsim 5: each takes what the other says, and the run ends."""

import pytest
from helpers.batsim5 import build_engine5
from helpers.golden import SESSIONS_5
from hypothesis import given, settings
from hypothesis import strategies as st

from decision.model.errors import PolicyError
from decision.protocol import Connection, Message, Role
from decision.protocol import messages as m

FEATURES = m.Features(
    dynamic_registration=True,
    profile_reuse=True,
    acknowledge_dynamic_jobs=True,
    forward_profiles_on_job_submission=True,
    forward_profiles_on_jobs_killed=True,
    forward_profiles_on_simulation_begins=True,
)
CHOICES = st.lists(
    st.sampled_from(["start", "kill", "call", "repeat", "stop", "probe", "register", "sleep"]), max_size=4
)


_TURNS = 12  # in which anything may be done


class Whimsical:
    """A decision process that does what is drawn, and in the end starts what waits and stops what comes again."""

    def __init__(self, data):
        self.connection, self.data = Connection(Role.DECISION), data
        self.waiting, self.running, self.free = {}, {}, set()
        self.turns, self.made, self.asleep, self.finished = 0, 0, set(), False

    def handle(self, question):
        message = self.connection.receive(question)
        self.now = message.now
        commands = []
        for event in message.events:
            match event:
                case m.Init():
                    hello = m.HelloData(name="whimsical", version="1", features=FEATURES)
                    return self.connection.send(Message(0.0, (m.Hello(0.0, hello),)))
                case m.SimulationBegins(data=data):
                    self.free = {host.id for host in data.compute_resources}
                case m.JobSubmitted(data=data):
                    self.waiting[data.job_id] = data.job.res
                case m.JobCompleted(data=data):
                    self.free |= self.running.pop(data.job_id)
                case m.ResourceStateChanged(data=data):
                    self.free |= {15} if data.state == "0" else set()
        if not self.connection.ending:
            self.turns += 1
            for choice in self.data.draw(CHOICES) if self.turns < _TURNS else ["end"]:
                self.made += 1
                commands += getattr(self, choice)()
        return self.connection.send(Message(message.now, tuple(commands)))

    def start(self):
        for job, size in self.waiting.items():
            if size <= len(self.free):
                hosts = sorted(self.free)[:size]
                del self.waiting[job]
                self.running[job] = set(hosts)
                self.free -= self.running[job]
                return [m.ExecuteJob(self.now, m.ExecuteJobData(job, " ".join(map(str, hosts))))]
        return []

    def kill(self):
        free = [job for job in self.running if job not in self.connection._ledger.killing]
        return [m.KillJob(self.now, m.KillJobData((free[0],)))] if free else []

    def call(self):
        later = self.data.draw(st.integers(0, 5000))
        return [m.CallMeLater(self.now, m.CallMeLaterData(self.now + later / 1000, f"once {self.made}", "ms"))]

    def repeat(self):
        periodic = m.Periodic(self.data.draw(st.sampled_from([100, 200, 400])), "s", self.data.draw(st.integers(1, 3)))
        return [m.CallMeLater(self.now, m.CallMeLaterData(0.0, f"again {self.made}", periodic=periodic))]

    def stop(self):
        return [m.StopCall(self.now, m.StopCallData(f"again {self.data.draw(st.integers(0, self.made))}"))]

    def probe(self):
        aggregation = self.data.draw(st.sampled_from(["Sum", "ArithmeticMean", "NoResourcesAggregation"]))
        data = m.CreateProbeData(f"probe {self.made}", "0-3", m.Periodic(100, "s", 2), aggregation)
        return [m.CreateProbe(self.now, data)]

    def register(self):
        if self.finished:
            return []
        name = f"d{self.made}"
        profile = m.RegisterProfileData("dyn", name, {"type": "delay", "delay": 5.0})
        job = m.JobDescription(id=f"dyn!{name}", res=1, subtime=self.now, walltime=9.0, profile=f"dyn!{name}")
        data = m.RegisterJobData(f"dyn!{name}", job)
        return [m.RegisterProfile(self.now, profile), m.RegisterJob(self.now, data)]

    def sleep(self):
        if 15 not in self.free or self.asleep:
            return []
        self.free.remove(15)
        self.asleep.add(15)
        return [m.SetResourceState(self.now, m.SetResourceStateData("15", "1", at_once=False))]

    def end(self):
        commands = []
        while more := self.start():
            commands += more
        if not self.finished:
            self.finished = True
            commands.append(m.Notify(self.now, m.NotifyData(type="registration_finished")))
        if not commands and not self.running:
            commands += [m.RejectJob(self.now, m.RejectJobData(job)) for job in self.waiting]
            self.waiting.clear()
        return commands


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_the_two_ends_understand_each_other(data):
    engine, agent = build_engine5(SESSIONS_5 / "energy_switch"), Whimsical(data)
    connection = Connection(Role.BATSIM, "5")

    def tell(message):
        return connection.receive(agent.handle(connection.send(message)))

    engine.greet(tell(Message(0.0, (m.Init(0.0, m.InitData("")),))).events[0].data.features)
    while (question := engine.ask()) is not None:
        engine.answer(tell(question))
    assert connection.ended
    record = engine.record()
    assert len(record.jobs.id) == len(set(record.jobs.id)) >= 40


def test_an_impossible_command_is_the_peers_fault():
    engine = build_engine5(SESSIONS_5 / "fcfs_delay")
    engine.greet(m.Features())
    engine.ask()
    with pytest.raises(PolicyError, match="--energy-host"):
        engine.answer(Message(0.0, (m.CreateProbe(0.0, m.CreateProbeData("p", "0", m.Periodic(1))),)))


def test_a_mapping_without_executors_is_refused_where_a_job_computes():
    engine = build_engine5(SESSIONS_5 / "compute_heterogeneous")
    engine.greet(m.Features())
    jobs = []
    while not jobs:
        question = engine.ask()
        jobs = [event.data.job_id for event in question.events if isinstance(event, m.JobSubmitted)]
        if not jobs:
            engine.answer(Message(question.now, ()))
    start = m.ExecuteJob(question.now, m.ExecuteJobData(jobs[0], "0", mapping={}))
    with pytest.raises(PolicyError, match="no executors"):
        engine.answer(Message(question.now, (start,)))
