"""The progress of a run: a small file in the run's folder while it runs, for viewers in other processes.

Batsim's output files say nothing before the end, since both Batsim and we write them late. So a run writes
``status.json`` (`decision.formats.run_status`) to its folder twice a second, to a temporary file that is renamed, and
removes it when it ends.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from decision.batsim.roles import Responder
from decision.formats.files import write_files
from decision.formats.json_text import json_bytes
from decision.formats.run_status import STATUS, Status
from decision.model.errors import ConfigError
from decision.model.platform import Platform
from decision.model.record import HostState
from decision.simulation.simulate import Progress
from decision.state.cluster import ClusterState
from decision.state.platform_facts import PlatformFacts, platform_facts

_INTERVAL = 0.5  # seconds between two writes
HOST_LETTERS = "SNFICU"  # by HostState: sleeping, switching on, switching off, idle, computing, unavailable


@contextmanager
def live_status(folder: Path, policy: str, jobs: int, platform: Platform) -> Iterator[Progress]:
    """Keep ``status.json`` in `folder` while the block runs; the yielded function reports the run's progress.

    A file that cannot be written does not stop the run.
    """
    facts = platform_facts(platform, energy=True)[0] if platform.has_power else None
    path, last = folder / STATUS, -_INTERVAL
    status = Status(
        policy=policy,
        written=time.time(),
        jobs=jobs,
        now=0.0,
        submitted=0,
        waiting=0,
        running=0,
        hosts=HOST_LETTERS[HostState.IDLE] * len(platform.hosts),
        watts=None,
    )

    def report(now: float, state: ClusterState | None) -> None:
        nonlocal last, status
        if state is None or time.monotonic() - last < _INTERVAL:
            return
        last = time.monotonic()
        status = _status_at(status, now, state, facts)
        _write(path, status)

    try:
        yield report
    finally:
        with suppress(OSError):
            path.unlink()


def _write(path: Path, status: Status) -> None:
    with suppress(ConfigError):
        write_files({path: [json_bytes(status)]})


def _status_at(last: Status, now: float, state: ClusterState, facts: PlatformFacts | None) -> Status:
    return replace(
        last,
        written=time.time(),
        now=now,
        submitted=int(state.nb_jobs),
        waiting=int(state.nb_queued),
        running=int(state.nb_running),
        hosts="".join(HOST_LETTERS[code] for code in state.host_state.tolist()),
        watts=None if facts is None else _watts(state, facts),
    )


def _watts(state: ClusterState, facts: PlatformFacts) -> float:
    """What all hosts draw in their pstates: those that compute at full load, the others without load."""
    hosts = np.arange(len(state.host_state))
    busy = state.host_state == HostState.COMPUTING
    return float(np.where(busy, facts.full[hosts, state.pstate], facts.idle[hosts, state.pstate]).sum())


class ReportingResponder:
    """An agent that reports the run's progress after each of its replies."""

    def __init__(self, agent: Responder, progress: Progress) -> None:
        self._agent, self._progress = agent, progress

    @property
    def finished(self) -> bool:
        """Whether the simulation has ended."""
        return self._agent.finished

    @property
    def now(self) -> float:
        """Simulated time, seconds."""
        return self._agent.now

    @property
    def state(self) -> ClusterState | None:
        """What the agent knows of the cluster."""
        return self._agent.state

    def get_ready(self) -> None:
        """As the agent's."""
        self._agent.get_ready()

    def handle(self, question: bytes) -> bytes:
        """As the agent's."""
        reply = self._agent.handle(question)
        self._progress(self._agent.now, self._agent.state)
        return reply
