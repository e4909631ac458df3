"""What a long run makes and nobody reads before its end: it waits in files.

Of the memory that ten million jobs need, the trace of the hosts and the allocations of jobs that are over would be two
fifths.
"""

import mmap
from collections.abc import Iterable
from tempfile import TemporaryFile
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from decision.compiling.bundle import I8
from decision.engine.kernels import arrays as a
from decision.model.errors import ConfigError
from decision.model.record import HostState, HostTable
from decision.state import transitions
from decision.state.cluster import ENDED, ClusterState

HOST_ROWS = 1 << 18  # rows of the hosts' trace that stay in memory

_HOST_ROW = np.dtype([("time", np.float64), ("counts", np.int32, len(HostState))])
_INTERVAL = np.dtype([("first", np.int32), ("last", np.int32)])
_DROP = getattr(mmap, "MADV_DONTNEED", None)  # which not every system has


class Spool:
    """Rows of a type in a file without a name, in the folder for temporary files."""

    def __init__(self, kind: np.dtype[Any]) -> None:
        self._kind = kind
        self._file: IO[bytes] | None = None
        self._map: mmap.mmap | None = None
        self.length = 0  # rows

    def put(self, rows: NDArray[Any]) -> None:
        """Add rows.

        Raises:
            ConfigError: if the file cannot be written.
        """
        try:
            self._file = self._file or TemporaryFile()  # noqa: SIM115 - as long as the run
            self._file.write(rows.data)
            self._file.flush()
        except OSError as error:
            raise ConfigError(
                f"a temporary file of a long run cannot be written ({error.strerror}); free space, or let TMPDIR name "
                "another folder"
            ) from None
        self.length += len(rows)

    def rows(self) -> NDArray[Any]:
        """All rows, once all are there."""
        if self._map is None and self._file is not None:
            self._map = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        return np.zeros(0, self._kind) if self._map is None else np.frombuffer(self._map, self._kind)

    def take(self, which: I8) -> NDArray[Any]:
        """These rows, once all are there; what was read of the file does not stay in memory."""
        # A map of the file: the system reads what is asked for, and may forget it again.
        rows = self.rows()[which]
        if self._map is not None and _DROP is not None:
            self._map.madvise(_DROP)
        return rows


class HostRows:
    """The trace of the hosts: the rows that no longer fit into `Rows`, and then all."""

    def __init__(self) -> None:
        self._spool = Spool(_HOST_ROW)

    @property
    def is_aside(self) -> bool:
        """Whether some rows are in a file."""
        return self._spool.length > 0

    def put_aside(self, world: a.World) -> None:
        """Take the rows out of `Rows`, which begins again. Raises ConfigError if no file can be written."""
        count, rows = int(world.sim.nb_host_rows), world.rows
        packed = np.empty(count, _HOST_ROW)
        packed["time"], packed["counts"] = rows.host_time[:count], rows.host_counts[:, :count].T
        self._spool.put(packed)
        world.sim.nb_host_rows = 0

    def table(self, world: a.World) -> HostTable:
        """All rows of a run that is over."""
        count, rows = int(world.sim.nb_host_rows), world.rows
        if not self._spool.length:
            return HostTable(time=rows.host_time[:count], counts=rows.host_counts[:, :count].T)
        if count:
            self.put_aside(world)
        table = self._spool.rows()
        return HostTable(time=table["time"], counts=table["counts"])


class Allocations:
    """The hosts of jobs that are over, as intervals, where nobody asks for them before the run's end."""

    def __init__(self) -> None:
        self.unasked = False  # whether nobody does
        self._spool = Spool(_INTERVAL)

    @property
    def is_aside(self) -> bool:
        """Whether some intervals are in a file."""
        return self._spool.length > 0

    def put_aside(self, world: a.World) -> None:
        """Take those out of the state of which nothing is to come. Raises ConfigError if no file can be written."""
        over = world.state.job_state >= ENDED
        over[[job for job in _named(world) if job < len(over)]] = False
        self._put(world.state, over)

    def intervals(self, state: ClusterState, jobs: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The first and last hosts of all intervals of jobs (n,) of a run that is over, job by job."""
        if self._spool.length:
            self._put(state, np.ones(len(state.job_state), bool))
        begin, count = state.alloc_first[jobs], state.alloc_count[jobs]
        # Below -1 is the place in the file, as `transitions.put_aside` left it.
        begin = np.where(begin < -1, -2 - begin, begin)
        end = np.cumsum(count)
        which = np.arange(end[-1] if len(end) else 0) + np.repeat(begin - (end - count), count)
        if not self._spool.length:
            return state.interval_first[which], state.interval_last[which]
        taken = self._spool.take(which)
        return taken["first"], taken["last"]

    def _put(self, state: ClusterState, over: NDArray[np.bool_]) -> None:
        held = int(state.nb_intervals)
        if held:
            first, last = np.empty((2, held), np.int32)
            taken = transitions.put_aside(state, over, first, last, self._spool.length)
            packed = np.empty(taken, _INTERVAL)
            packed["first"], packed["last"] = first[:taken], last[:taken]
            self._spool.put(packed)


def _named(world: a.World) -> Iterable[int]:
    """Jobs of which the policy or the engine may still ask, and some more: whatever a code could be about."""
    state, sim = world.state, world.sim
    yield from state.ended[: state.nb_ended].tolist()
    waiting = np.arange(world.sim.mail_head, world.sim.mail_tail)
    codes = (
        sim.code[: world.sim.nb_activities],
        sim.instant[: world.sim.nb_instant],
        sim.actor[: world.sim.nb_actors],
        sim.mail[waiting & (len(sim.mail) - 1)],
    )
    for code in np.concatenate(codes).tolist():
        yield from (code >> 4, code >> 8)  # a message on its way is a code of which the rest is a code
