"""The gates of a learned policy, checked on whole logs and kept in its manifest; `decision.rl.learning.checkpoint` asks
for them.

One run of a log is one draw, so all figures are over ten copies of it, with shaken submissions
(`decision.model.reshape.shaken`). The policy's mean waiting time and mean bounded slowdown are not above those of FCFS
with EASY, and its longest wait is at most 1.5 times as long as EASY's on the same copy in the median, and twice as long
on any. On the same jobs, with arrivals so far apart that the machine is nearly
idle, no job waits that would not wait under FCFS with EASY. And the schedule is the same on all engines.

Where servers sleep a job waits for them to wake, so policies for such servers have gates of their own, over the log's
days: against first-fit on the same servers with a timeout of 5 minutes their mean wait is at most 1.1 times and their
longest wait at most 1.5 times as long, and neither waste nor switches are above.

A policy for utilization lets small jobs wait for large ones, so its waits have no gate (``guard=auto`` bounds them);
but the room that it leaves idle up to the last end must not be above EASY's.

A policy that knows what jobs are worth lets those wait that are worth little, so its waits have no gate either. Under
the same supply of power, where there is one, it misses no more of the submitted value than the heuristic that suspends
by value per host-second left, and than the best order of Launchpad's paper, which suspends nothing; and no more value
is violated than under EASY.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from decision import __version__
from decision.batsim.agent import Agent
from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.rules import EngineOptions
from decision.model.dates import DAY_LEAD, chosen_days, of_day
from decision.model.demand import offered_load, runtimes
from decision.model.platform import Platform
from decision.model.record import JobTable
from decision.model.reshape import Filters, at_load, reshape, shaken
from decision.model.workload import Workload
from decision.policies import find_policy
from decision.policies.checks import check_worths
from decision.policies.traits import traits_of
from decision.rl.learning.checkpoint import Gate, GateCheck, read_checkpoint, read_manifest, write_checkpoint
from decision.rl.schedulers import Scheduler, find_scheduler
from decision.simulation import simulate_workloads

from .comparison import times_as_long
from .energy import count_switches, split_energy
from .inputs import LogOnHosts
from .metrics import bounded_slowdowns, only_ran, waiting_times
from .run import simulate_by_messages
from .worth import join_parts, value_share, violated_share

# What a schedule comes to, and its gates against that of FCFS with EASY: of one run, or over copies of a log.

LONGEST_WAIT = 1.5  # times that of FCFS with EASY, or of first-fit where servers sleep
LONGEST_OF_ALL = 2.0  # times, on any copy
NO_WAIT = 1e-3  # seconds: clocks round
_ROUNDING = 1e-6  # share


class Measures(NamedTuple):
    """What a schedule of a whole log comes to."""

    wait: float  # seconds, mean
    slowdown: float  # bounded, mean
    longest: float  # seconds
    idle: float = 0.0  # share of the room from the first submission to the last end


def measure(table: JobTable, nb_hosts: int = 0) -> Measures:
    """Of the jobs that ran, on so many hosts; idle room is left out where these are not said."""
    ran = only_ran(table)
    waits = waiting_times(ran)
    return Measures(
        float(waits.mean()), float(bounded_slowdowns(ran).mean()), float(waits.max()), idle_room(ran, nb_hosts)
    )


def idle_room(ran: JobTable, nb_hosts: int) -> float:
    """Share of the hosts' time, from the first submission to the last end, in which no job runs."""
    room = nb_hosts * float((ran.start_time + ran.runtime).max() - ran.submit_time.min())
    return 1.0 - float(ran.runtime @ ran.size) / room if room > 0 else 0.0


def gates_over(own: Sequence[Measures], easy: Sequence[Measures]) -> tuple[Gate, ...]:
    """The gates over copies of a log, of a policy's measures against those of FCFS with EASY on the same ones."""
    times = times_as_long([each.longest for each in own], [each.longest for each in easy], NO_WAIT)
    return (
        make_gate("mean wait", mean_of("wait", own), mean_of("wait", easy)),
        make_gate("mean bounded slowdown", mean_of("slowdown", own), mean_of("slowdown", easy)),
        *longest_gates(times),
    )


def longest_gates(times: Sequence[float]) -> tuple[Gate, Gate]:
    """The gates of the longest waits over those of FCFS with EASY, by copy of a log."""
    return (
        make_gate("longest wait, times EASY's, median of the copies", float(np.median(times)), LONGEST_WAIT),
        make_gate("longest wait, times EASY's, largest of the copies", max(times), LONGEST_OF_ALL),
    )


def mean_of(name: str, measures: Sequence[NamedTuple]) -> float:
    """The mean of one of the measures."""
    return float(np.mean([getattr(each, name) for each in measures]))


def make_gate(name: str, found: float, most: float) -> Gate:
    """A gate that rounding does not close."""
    return Gate(name=name, found=float(found), most=float(most) * (1 + _ROUNDING))


GATE_COPIES = 10  # of a log, with shaken submissions
WAIT_ON_SERVERS = 1.1  # times that of first-fit
_FIRST_FIT = "first-fit,start=bound,power=idle-timeout,idle_timeout=300"
BY_DENSITY = "density+first-fit,suspend=density"
BY_QOS = "qos+first-fit"
_IDLE = 0.01  # offered load of a nearly idle machine
_REFERENCE_JOBS = 300  # that the engine in plain Python simulates
_MESSAGE_DAYS = 5  # that are simulated through messages
_PLAIN = EngineOptions()
_ENERGY = EngineOptions(energy=True)
_SUSPENDING = EngineOptions(dynamic_jobs=True, forward_unknown_events=True)
_PRINTED = 1e-5  # seconds: half of the last digit in Batsim's files, and more
_CLOCK = 1e-3  # seconds by which times of jobs that were suspended differ: what is left of them is rounded


def _copies(workload: Workload) -> list[Workload]:
    return [shaken(workload, copy) for copy in range(1, GATE_COPIES + 1)]


InBatsim = Callable[[str, Workload], JobTable]
"""Runs a policy over a workload of the log's in a Batsim; `decision.experiments.run.run_in_batsim` does."""


def check_gates(checkpoint: Path, log: LogOnHosts, in_batsim: InBatsim | None = None) -> GateCheck:
    """Check the gates of a checkpoint on copies of a log.

    Args:
        checkpoint: the file.
        log: hosts and jobs, all with a walltime.
        in_batsim: where given, the schedule must be the same in a Batsim, too.

    Raises:
        InputError: if the checkpoint cannot be used.
        ConfigError: if the inputs do not fit together.
    """
    policy, bare = str(checkpoint), log._replace(events=())
    if knows_value(policy):
        gates = _gates_on_value(policy, log, in_batsim)
    elif lets_sleep(checkpoint):
        gates = _gates_on_servers(policy, bare, in_batsim)
    else:
        gates = _gates_on_hosts(checkpoint, bare, in_batsim)
    return GateCheck(
        decision=__version__,
        platform=log.files[0],
        workload=log.files[1],
        events=log.files[2:],
        selection=log.selection,
        jobs=len(log.workload.jobs),
        gates=gates,
    )


def _gates_on_hosts(checkpoint: Path, log: LogOnHosts, in_batsim: InBatsim | None) -> tuple[Gate, ...]:
    """Those of a policy for hosts that never sleep."""
    policy, platform, workload, hosts = str(checkpoint), log.platform, log.workload, len(log.platform.hosts)
    for_utilization = _scheduler_of(checkpoint).for_utilization
    own, easy = (
        [measure(simulate_workloads(platform, [copy], name).jobs, hosts) for copy in _copies(workload)]
        for name in (policy, "easy")
    )
    idle = make_gate("idle room", mean_of("idle", own), mean_of("idle", easy))
    return (
        *((idle,) if for_utilization else gates_over(own, easy)),
        idle_gate(policy, platform, workload),
        _same_everywhere(policy, log, [workload], _first(workload), in_batsim=in_batsim),
    )


def lets_sleep(checkpoint: Path) -> bool:
    """Whether it is of a scheduler for servers that sleep. Raises InputError if it cannot be read."""
    return _scheduler_of(checkpoint).energy


def knows_value(policy: str) -> bool:
    """Whether it decides by what jobs are worth. Raises InputError if it cannot be read."""
    return traits_of(find_policy(policy)).needs_value


def _scheduler_of(checkpoint: Path) -> Scheduler:
    return find_scheduler(read_manifest(checkpoint).config.scheduler)


def keep_check(checkpoint: Path, found: GateCheck) -> None:
    """Write a check into the manifest of its checkpoint, in place of an older one on the same jobs.

    Raises:
        InputError: if the checkpoint cannot be read.
        ConfigError: if it cannot be written.
    """
    manifest, weights = read_checkpoint(checkpoint)
    others = tuple(check for check in manifest.gates if _jobs_of(check) != _jobs_of(found))
    write_checkpoint(checkpoint, replace(manifest, gates=(*others, found)), weights)


def _jobs_of(check: GateCheck) -> tuple[object, ...]:
    return check.workload, check.selection, check.events


def idle_gate(policy: str, platform: Platform, workload: Workload) -> Gate:
    """The gate on a nearly idle machine with the same jobs."""
    speed, idle = platform.hosts[0].pstates[0].speed, workload
    if offered_load(workload, runtimes(workload, speed)) > _IDLE:
        idle = at_load(workload, _IDLE, speed)
    tables = [simulate_workloads(platform, [idle], name).jobs for name in (policy, "easy")]
    # By the jobs' ids; 0 s where a job was rejected
    waits, easy = (
        np.nan_to_num(waiting_times(table))[np.argsort(np.array(list(table.id), dtype=object))] for table in tables
    )
    return make_gate("jobs that wait on a nearly idle machine", ((waits > NO_WAIT) & (easy <= NO_WAIT)).sum(), 0)


def _same_everywhere(
    policy: str,
    log: LogOnHosts,
    fast: Sequence[Workload],
    plain: Workload,
    options: tuple[EngineOptions, EngineOptions] = (_PLAIN, _PLAIN),
    clock: float = 0.0,
    *,
    in_batsim: InBatsim | None = None,
) -> Gate:
    """Jobs that start on other hosts, or at another time, by more than `clock` seconds, than in the loop.

    Args:
        policy: its name.
        log: hosts and events.
        fast: jobs of which the policy decides through messages.
        plain: jobs that the engine in plain Python simulates.
        options: of the loop, and of the engines that messages come from.
        clock: seconds.
        in_batsim: where given, a Batsim simulates the jobs of `fast`, too.
    """
    from decision.engine.reference.engine import ReferenceEngine

    differ, loop = 0, options[0]

    def differing(simulated: JobTable, other: JobTable, clock: float) -> int:
        there = dict(zip(other.id, zip(other.start_time.tolist(), other.allocation, strict=True), strict=True))
        rows = zip(simulated.id, simulated.start_time.tolist(), simulated.allocation, strict=True)
        return sum(
            job not in there or there[job][1] != hosts or abs(there[job][0] - start) > clock
            for job, start, hosts in rows
        )

    made: list[tuple[type[EmbeddedEngine] | type[ReferenceEngine], Workload]] = [(ReferenceEngine, plain)]
    for engine, jobs in made + [(EmbeddedEngine, each) for each in fast]:
        simulated = simulate_workloads(log.platform, [jobs], policy, events=log.events, engine_options=loop).jobs
        agent = Agent(policy, {}, platform=log.platform)
        other = simulate_by_messages(engine(log.platform, [jobs], log.events, options[1]), agent).jobs
        differ += differing(simulated, other, clock)
        if in_batsim is not None and engine is EmbeddedEngine:
            differ += differing(simulated, in_batsim(policy, jobs), max(clock, _PRINTED))
    return make_gate("jobs that other engines start otherwise", differ, 0)


def _first(workload: Workload) -> Workload:
    return reshape(workload, Filters(jobs=slice(0, _REFERENCE_JOBS)))


class _OnServers(NamedTuple):
    """What the schedules of a log's days come to."""

    wait: float  # seconds, mean over all jobs
    longest: float  # seconds
    waste: float  # joules
    switches: float


def _gates_on_servers(policy: str, log: LogOnHosts, in_batsim: InBatsim | None) -> tuple[Gate, ...]:
    """Those of a policy for servers that sleep. Raises ConfigError where none do, or no day is left."""
    workload = replace(log.workload, jobs=sorted(log.workload.jobs, key=lambda job: job.submit_time))
    days = [of_day(workload, day) for day in chosen_days(workload, slice(None))]
    own, other = (
        [_measure_days(name, log.platform, [shaken(day, copy) for day in days]) for copy in range(1, GATE_COPIES + 1)]
        for name in (policy, _FIRST_FIT)
    )
    return (
        make_gate("mean wait", mean_of("wait", own), WAIT_ON_SERVERS * mean_of("wait", other)),
        make_gate("longest wait", mean_of("longest", own), LONGEST_WAIT * mean_of("longest", other)),
        make_gate("energy waste", mean_of("waste", own), mean_of("waste", other)),
        make_gate("switches", mean_of("switches", own), mean_of("switches", other)),
        _same_everywhere(policy, log, days[:_MESSAGE_DAYS], days[0], (_ENERGY, _ENERGY), in_batsim=in_batsim),
    )


def _measure_days(policy: str, platform: Platform, days: Sequence[Workload]) -> _OnServers:
    waits, waste, switches = [], 0.0, 0.0
    for day in days:
        record = simulate_workloads(platform, [day], policy, engine_options=_ENERGY)
        waits.append(waiting_times(only_ran(record.jobs)))
        waste += split_energy(record, platform, DAY_LEAD).waste
        switches += count_switches(record, platform, DAY_LEAD)
    every = np.concatenate(waits)
    return _OnServers(float(every.mean()), float(every.max()), waste, switches)


def _gates_on_value(policy: str, log: LogOnHosts, in_batsim: InBatsim | None) -> tuple[Gate, ...]:
    """Those of a policy that knows what jobs are worth. Raises ConfigError where a job does not say it."""
    check_worths(traits_of(find_policy(policy)), [log.workload])
    missed, violated = {}, {}
    for name in (policy, BY_DENSITY, BY_QOS, "easy"):
        records = [simulate_workloads(log.platform, [copy], name, events=log.events) for copy in _copies(log.workload)]
        missed[name] = float(np.mean([1.0 - value_share(join_parts(record.jobs), record.worth) for record in records]))
        violated[name] = float(np.mean([violated_share(join_parts(each.jobs), each.worth) for each in records]))
    return (
        *(make_gate(f"value missed, as of {name}", missed[policy], missed[name]) for name in (BY_DENSITY, BY_QOS)),
        make_gate("value violated, as of easy", violated[policy], violated["easy"]),
        _same_everywhere(
            policy, log, [log.workload], _first(log.workload), (_PLAIN, _SUSPENDING), _CLOCK, in_batsim=in_batsim
        ),
    )
