"""Jobs with values and deadlines, and power that comes and goes, at awkward times."""

import json

import numpy as np
from msgspec.structs import replace

from decision.engine.rules import EngineOptions
from decision.files.generate.platforms import networked
from decision.model.platform import Flat, Link, Platform, PowerState, Route
from decision.model.workload import POWER_SUPPLY, Delay, Job, MachineEvent, Workload, Worth

HOSTS = 8
POLICIES = (
    "fcfs",
    "density+first-fit,suspend=density",
    "fcfs,suspend=value,restart=7",
    "qos+first-fit,suspend=density,late=keep",
    "edf,suspend=density,beyond=grid",
    "hvf+easy,restart=3",
    "conservative,late=keep",
    "conservative,beyond=grid",
    "qos+first-fit,beyond=battery,battery=0.3,battery_charge=3,battery_discharge=4,battery_efficiency=0.8",
    "sjf+easy,guard=100",
    "kamelot",
    "helpers.green_worlds:Restless",
)
FAILING = (
    "density+first-fit,suspend=density,failed=resubmit,checkpoint_every=20,checkpoint=2,restart=3",
    "hvf+easy,failed=resubmit,restart=3",
    "conservative,late=keep,failed=kill",
    "kamelot,failed=resubmit",
    "helpers.green_worlds:Restless,failed=resubmit,checkpoint_every=10",
)
BY_MESSAGES = EngineOptions(dynamic_jobs=True, forward_unknown_events=True)


class Restless:
    """Suspends, now and then, the running job that has the most hosts, and starts what fits, the last job first."""

    suspends = True

    def reset(self, platform, seed):
        """It remembers how often it was asked."""
        self.asked = 0

    def decide(self, cluster, plan):
        """Any plan that can be carried out will do."""
        self.asked += 1
        if self.asked % 4 == 0 and cluster.running:
            chosen = max(cluster.running, key=lambda job: (job.size, job.number))
            if not cluster.arrays.suspended[chosen.number]:
                plan.suspend(chosen)
        for job in reversed(cluster.queue):
            if job.size <= plan.nb_free:
                plan.start(job)


class Restful:
    """Starts what fits, in order, and is asked like any policy in Python."""

    def reset(self, platform, seed):
        """It remembers nothing."""

    def decide(self, cluster, plan):
        """First fit."""
        for job in cluster.queue:
            if job.size <= plan.nb_free:
                plan.start(job)


def platform(latency: float = 0.0) -> Platform:
    """Eight hosts around a switch, with links of a latency in seconds."""
    return networked(Flat(HOSTS, Link(1.25e9, latency)), (PowerState(1e9),))


def slow_platform(latency: float) -> Platform:
    """The same hosts, whose messages to Batsim take time where there is a latency."""
    return replace(platform(latency), routes=(Route(latency, 1.25e9),) * (HOSTS + 1) if latency else ())


def workload(seed: int, jobs: int = 30) -> Workload:
    """Jobs at whole seconds, so that some come when others end and when power changes; some do not say everything."""
    rng = np.random.default_rng(seed)
    made = []
    for number, at in enumerate(np.sort(rng.integers(0, 40 * jobs, jobs)).tolist()):
        run = int(rng.integers(1, 9)) * 20
        deadline = at + run / float(rng.choice([0.3, 0.6, 1.0])) if rng.random() < 0.8 else np.nan
        worth = Worth(float(rng.integers(0, 50)), float(rng.choice([50, 75, 100])), deadline, float(run))
        made.append(
            Job(
                id=f"w0!{number:02}",
                submit_time=float(at),
                size=int(rng.integers(1, HOSTS + 1)),
                walltime=float(run + rng.integers(1, 30)),
                profile=f"d{run}",
                worth=worth,
            )
        )
    profiles = {f"d{run}": Delay(float(run), run // 20 % 3) for run in range(20, 180, 20)}
    return Workload(name="w0", jobs=made, profiles=profiles, nb_res=8)


def supply(seed: int, jobs: int = 30) -> tuple[MachineEvent, ...]:
    """Power for any number of hosts, none included, that changes every 10 to 150 s; in the end for all."""
    rng, events, time = np.random.default_rng(seed + 1000), [], 0
    while time < 60 * jobs:
        events.append(_event(float(time), int(rng.integers(0, HOSTS + 1))))
        time += 10 * int(rng.integers(1, 16))
    return (*events, _event(float(time), HOSTS))


def _event(time: float, hosts: int) -> MachineEvent:
    said = {"type": POWER_SUPPLY, "timestamp": time, "hosts": hosts, "forecast": [hosts, HOSTS]}
    return MachineEvent(
        timestamp=time, type=POWER_SUPPLY, hosts=(hosts, hosts, HOSTS), source=json.dumps(said).encode()
    )


def failing(seed: int, jobs: int = 30) -> tuple[MachineEvent, ...]:
    """Failures of one or two hosts every so often, at whole tens of seconds."""
    rng, events, time = np.random.default_rng(seed + 2000), [], 0
    while time < 60 * jobs:
        away = tuple(sorted(rng.choice(HOSTS, int(rng.integers(1, 3)), replace=False).tolist()))
        begin = time + 10 * int(rng.integers(1, 9))
        time = begin + 10 * int(rng.integers(1, 9))
        for at, kind in ((begin, "machine_unavailable"), (time, "machine_available")):
            said = {"type": kind, "timestamp": float(at), "resources": " ".join(map(str, away))}
            events.append(MachineEvent(timestamp=float(at), type=kind, hosts=away, source=json.dumps(said).encode()))
    return tuple(events)
