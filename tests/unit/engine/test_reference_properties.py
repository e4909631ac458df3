"""What holds in every run of the reference engine, whatever the workload and the policy."""

import math
import random
from itertools import pairwise

import pytest
from helpers.reference_toys import powered, workload
from hypothesis import given, settings
from hypothesis import strategies as st

from decision.engine.reference.engine import ReferenceEngine
from decision.engine.rules import EngineOptions
from decision.model.hosts import format_hosts, parse_hosts
from decision.model.platform import PowerState, SleepState
from decision.model.record import FinalState
from decision.model.workload import Composed, Delay, Job, ParallelHomogeneous, ParallelHomogeneousTotal
from decision.protocol import Connection, Role
from decision.protocol import messages as protocol

NB_HOSTS = 6
AWAKE = PowerState(2.0, 10.0, 20.0, 100.0)
ECO = PowerState(1.0, 8.0, 10.0, 40.0)
ASLEEP = PowerState(0.01, 1.0, 1.0, 1.0)
OFF, ON = PowerState(0.5, 30.0, 30.0, 30.0), PowerState(0.25, 60.0, 60.0, 60.0)
PLATFORM = powered(*[(AWAKE, ECO, ASLEEP, OFF, ON)] * NB_HOSTS, sleep=[SleepState(2, 3, 4)])
PROFILES = {
    "short": Delay(2.0),
    "long": Delay(7.25),
    "flops": ParallelHomogeneous(9.0, 0.0),
    "total": ParallelHomogeneousTotal(12.0, 0.0),
    "none": ParallelHomogeneous(0.0, 0.0),
    "fails": Delay(3.0, exit_code=2),
    "mixed": Composed(("short", "flops"), 2),
}


@st.composite
def works(draw):
    """Up to 15 jobs at whole and half seconds, so that much happens at one instant."""
    jobs = [
        Job(
            id=f"w0!{number}",
            submit_time=draw(st.integers(0, 20)) / 2,
            size=draw(st.integers(1, NB_HOSTS)),
            walltime=draw(st.sampled_from([math.inf, 2.0, 4.5, 9.0, 20.0])),
            profile=draw(st.sampled_from(sorted(PROFILES))),
        )
        for number in range(draw(st.integers(0, 15)))
    ]
    return workload(*jobs, **PROFILES)


class Chaos:
    """A policy that starts, rejects and kills jobs and switches hosts at random, but nothing impossible."""

    def __init__(self, seed: int, energy: bool) -> None:
        self.rng, self.energy = random.Random(seed), energy
        self.free, self.queue, self.running = set(range(NB_HOSTS)), {}, {}
        self.asleep, self.moving = set(), set()

    def decide(self, question):
        for event in question.events:
            self.learn(event)
        commands = list(self.commands(question.now))
        late = question.now + self.rng.choice([0.0, 0.0, 0.5])
        return protocol.Message(late, tuple(commands))

    def learn(self, event):
        if isinstance(event, protocol.JobSubmitted):
            self.queue[event.data.job_id] = event.data.job.res
        elif isinstance(event, protocol.JobCompleted):
            self.free |= self.running.pop(event.data.job_id)
        elif isinstance(event, protocol.ResourceStateChanged):
            hosts = set(parse_hosts(event.data.resources))
            self.moving -= hosts
            (self.asleep if event.data.state == "2" else self.free).update(hosts)

    def commands(self, now):
        for job, size in list(self.queue.items()):
            if self.rng.random() < 0.05:
                yield protocol.RejectJob(now, protocol.RejectJobData(job))
                del self.queue[job]
            elif size <= len(self.free) and self.rng.random() < 0.8:
                yield self.start(now, job, set(self.rng.sample(sorted(self.free), size)))
        if self.running and self.rng.random() < 0.2:
            yield protocol.KillJob(now, protocol.KillJobData((self.rng.choice(sorted(self.running)),)))
        if self.energy:
            yield from self.switches(now)
        if self.queue:
            yield protocol.CallMeLater(now, protocol.CallMeLaterData(now + self.rng.choice([1.0, 2.5])))

    def start(self, now, job, hosts):
        del self.queue[job]
        self.free -= hosts
        self.running[job] = hosts
        return protocol.ExecuteJob(now, protocol.ExecuteJobData(job, format_hosts(hosts)))

    def switches(self, now):
        if self.asleep and (self.queue or self.rng.random() < 0.3):
            yield self.switch(now, self.asleep, 0)
        elif len(self.free) > 2 and not self.queue:
            yield self.switch(now, {min(self.free)}, 2)
        elif self.free and self.rng.random() < 0.2:
            yield self.switch(now, {max(self.free)}, self.rng.choice([0, 1]))

    def switch(self, now, hosts, pstate):
        text = format_hosts(hosts)
        self.moving |= hosts
        self.free, self.asleep = self.free - hosts, self.asleep - hosts
        return protocol.SetResourceState(now, protocol.SetResourceStateData(text, str(pstate)))


def simulate(work, seed, energy):
    """Run under `Chaos`, with the conversation held to the protocol at both ends; returns the record."""
    engine = ReferenceEngine(PLATFORM, [work], (), EngineOptions(energy=energy))
    ours, theirs = Connection(Role.BATSIM), Connection(Role.DECISION)
    policy = Chaos(seed, energy)
    while (question := engine.ask()) is not None:
        heard = theirs.receive(ours.send(question))
        ended = any(isinstance(event, protocol.SimulationEnds) for event in heard.events)
        reply = protocol.Message(heard.now, ()) if ended else policy.decide(heard)
        engine.answer(ours.receive(theirs.send(reply)))
    assert ours.ended and theirs.ended
    return engine.record()


RUNS = given(works(), st.integers(0, 2**32), st.booleans())


@RUNS
@settings(max_examples=60, deadline=None)
def test_the_conversation_is_one_that_the_protocol_allows_and_no_job_is_lost(work, seed, energy):
    table = simulate(work, seed, energy).jobs
    assert sorted(table.id) == sorted(job.id for job in work.jobs)


@RUNS
@settings(max_examples=60, deadline=None)
def test_no_job_starts_before_it_arrives_outlasts_its_walltime_or_shares_a_host(work, seed, energy):
    table = simulate(work, seed, energy).jobs
    ran = table.final_state != FinalState.REJECTED
    assert (table.start_time[ran] >= table.submit_time[ran]).all()
    assert (table.runtime[ran] <= table.walltime[ran] + 1e-9).all()
    spans = {host: [] for host in range(NB_HOSTS)}
    for start, runtime, hosts in zip(table.start_time, table.runtime, table.allocation, strict=True):
        for host in parse_hosts(hosts):
            spans[host].append((start, start + (0.0 if runtime == 1e-5 else runtime)))
    assert all(first[1] <= then[0] + 1e-9 for own in spans.values() for first, then in pairwise(sorted(own)))


@RUNS
@settings(max_examples=60, deadline=None)
def test_hosts_are_counted_once_and_compute_as_long_as_their_jobs_run(work, seed, energy):
    record = simulate(work, seed, energy)
    assert (record.host_states.counts.sum(axis=1) == NB_HOSTS).all()
    table = record.jobs
    seconds = [
        runtime * len(parse_hosts(hosts))
        for runtime, hosts in zip(table.runtime, table.allocation, strict=True)
        if not math.isnan(runtime) and runtime != 1e-5
    ]
    assert record.time_in_state[4] == pytest.approx(sum(seconds), abs=1e-6)


@RUNS
@settings(max_examples=60, deadline=None)
def test_energy_only_grows_and_lies_between_all_asleep_and_all_at_full_load(work, seed, energy):
    record = simulate(work, seed, energy)
    if not energy:
        assert record.energy is None and record.pstates is None and record.joules == 0.0
        return
    time, joules = record.energy.time, record.energy.energy
    assert (joules[1:] >= joules[:-1]).all() and (time[1:] >= time[:-1]).all()
    assert (joules >= NB_HOSTS * 1.0 * time - 1e-6).all()
    assert (joules <= NB_HOSTS * 100.0 * time + 1e-6).all()
