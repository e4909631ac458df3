"""The gates of a learned policy, checked on whole logs and kept in its manifest; `decision.learn.gates` asks for them.

On a log, as it is, the policy's mean waiting time and mean bounded slowdown are not above those of FCFS with EASY, and
its longest wait is at most 1.5 times as long. On the same jobs, with arrivals so far apart that the machine is nearly
idle, no job waits that would not wait under FCFS with EASY. And the schedule is the same wherever the policy runs.
"""

from pathlib import Path

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from decision import __version__
from decision.analysis.metrics import bounded_slowdowns, only_ran
from decision.batsim.agent import Agent
from decision.engine.embedded import EmbeddedEngine
from decision.formats.input_facts import InputFacts
from decision.formats.selection import Selection
from decision.learn.checkpoint import Gate, GateCheck, read_checkpoint, write_checkpoint
from decision.model.demand import offered_load, runtimes
from decision.model.platform import Platform
from decision.model.record import JobTable
from decision.model.reshape import Filters, at_load, reshape
from decision.model.workload import Workload
from decision.simulation import simulate_workloads

from .engines import simulate_by_messages

LONGEST_WAIT = 1.5  # times that of FCFS with EASY
_IDLE = 0.01  # offered load of a nearly idle machine
_NO_WAIT = 1e-3  # seconds: clocks round
_REFERENCE_JOBS = 300  # that the engine in plain Python simulates
_ROUNDING = 1e-6  # share


def check_gates(
    checkpoint: Path,
    platform: Platform,
    workload: Workload,
    files: tuple[InputFacts, InputFacts],
    selection: Selection = Selection(),  # noqa: B008 - immutable
) -> GateCheck:
    """Check the gates of a checkpoint on a log, and write what was found into its manifest.

    Args:
        checkpoint: the file.
        platform: the hosts.
        workload: the jobs, all with a walltime.
        files: of platform and workload.
        selection: which jobs of its file the workload has.

    Raises:
        InputError: if the checkpoint cannot be used.
        ConfigError: if the inputs do not fit together, or the checkpoint cannot be written.
    """
    gates = (*_gates_on(str(checkpoint), platform, workload), _same_everywhere(str(checkpoint), platform, workload))
    found = GateCheck(
        decision=__version__,
        platform=files[0],
        workload=files[1],
        selection=selection,
        jobs=len(workload.jobs),
        gates=gates,
    )
    manifest, weights = read_checkpoint(checkpoint)
    others = tuple(c for c in manifest.gates if (c.workload, c.selection) != (found.workload, found.selection))
    write_checkpoint(checkpoint, replace(manifest, gates=(*others, found)), weights)
    return found


def _gates_on(policy: str, platform: Platform, workload: Workload) -> tuple[Gate, ...]:
    own, easy = (simulate_workloads(platform, [workload], name).jobs for name in (policy, "easy"))
    idle = _nearly_idle(platform, workload)
    own_idle, easy_idle = (_waits(simulate_workloads(platform, [idle], name).jobs) for name in (policy, "easy"))
    slowdowns = [float(bounded_slowdowns(only_ran(table)).mean()) for table in (own, easy)]
    return (
        _gate("mean wait", _waits(own).mean(), _waits(easy).mean()),
        _gate("mean bounded slowdown", *slowdowns),
        _gate("longest wait", _waits(own).max(), LONGEST_WAIT * _waits(easy).max()),
        _gate("jobs that wait on a nearly idle machine", ((own_idle > _NO_WAIT) & (easy_idle <= _NO_WAIT)).sum(), 0),
    )


def _nearly_idle(platform: Platform, workload: Workload) -> Workload:
    """The same jobs, so far apart that they take a small share of the machine's time."""
    speed = platform.hosts[0].pstates[0].speed
    if offered_load(workload, runtimes(workload, speed)) <= _IDLE:
        return workload
    return at_load(workload, _IDLE, speed)


def _gate(name: str, found: float, most: float) -> Gate:
    return Gate(name=name, found=float(found), most=float(most) * (1 + _ROUNDING))


def _same_everywhere(policy: str, platform: Platform, workload: Workload) -> Gate:
    """Jobs that start at another time or on other hosts through messages, or on the engine in plain Python."""
    from decision.engine.reference.engine import ReferenceEngine

    few = reshape(workload, Filters(jobs=slice(0, _REFERENCE_JOBS)))
    differ = 0
    for engine, jobs in ((EmbeddedEngine, workload), (ReferenceEngine, few)):
        looped = _starts(simulate_workloads(platform, [jobs], policy).jobs)
        agent = Agent(policy, {}, platform=platform)
        differ += len(looped - _starts(simulate_by_messages(engine(platform, [jobs]), agent).jobs))
    return _gate("jobs that other engines start otherwise", differ, 0)


def _starts(table: JobTable) -> set[tuple[str, float, str]]:
    """Job, seconds and hosts of each start."""
    return set(zip(table.id, table.start_time.tolist(), table.allocation, strict=True))


def _waits(table: JobTable) -> NDArray[np.float64]:
    """(n,) seconds, by the jobs' ids; 0 where a job was rejected."""
    waits = np.nan_to_num(table.start_time - table.submit_time)
    return waits[np.argsort(np.array(list(table.id), dtype=object))]
