"""The split window of the queue (Wang, Harwood and Rodriguez, HPCC 2022), which DBF and RLScheduler choose from.

Slots 0 .. head - 1 are the first jobs of the queue, the `tail` slots after them the last ones, the newest first. No job
is in two slots.
"""

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

import msgspec
import numpy as np

from decision.compiling.bundle import F8, I4, Bundle
from decision.compiling.jit import kernel
from decision.model.errors import ConfigError
from decision.model.workload import Workload

from .base import ChoosingScheduler, Encoder

JOB_FEATURES = 4  # numbers of a slot
MOST_SLOTS = 8192  # of a window
HALF_A_DAY = 12 * 3600.0  # seconds: what counts as 1 in a wait, by default
SECONDS = (1e-6, 1e15)  # of max_runtime and max_wait: 1 / max_runtime is finite, and so are its products

Slots = Annotated[int, msgspec.Meta(ge=0, le=MOST_SLOTS)]
Count = Annotated[int, msgspec.Meta(ge=1, le=2**62)]


class ScaledEncoder(Encoder, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One whose times are shares of a longest one."""

    max_runtime: float  # seconds: the longest runtime that a job may request
    max_wait: float  # seconds that count as 1, or as half of an endless wait

    def __post_init__(self) -> None:
        super().__post_init__()
        for option in ("max_runtime", "max_wait"):
            check_scale(option, getattr(self, option))


class WindowEncoder(ScaledEncoder, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One with a window of the queue."""

    head: int  # window slots for the first jobs of the queue

    def __post_init__(self) -> None:
        super().__post_init__()
        tail = getattr(self, "tail", 0)
        if self.head < 0 or tail < 0 or self.window < 1:
            raise ConfigError(f"window of {self.head} first and {tail} last jobs: it must have at least one slot")
        if self.window > MOST_SLOTS:
            raise ConfigError(f"window of {self.window} jobs: it must have at most {MOST_SLOTS:,} slots")


def check_scale(option: str, found: float) -> None:
    """Refuse seconds that times cannot be divided by. Raises ConfigError, naming the option."""
    if not 0 < found < np.inf:
        raise ConfigError(f"{option}: must be positive and finite; found {found}")
    if not SECONDS[0] <= found <= SECONDS[1]:
        raise ConfigError(f"{option}: must be between {SECONDS[0]:g} and {SECONDS[1]:g} seconds; found {found}")


def longest_walltime(workloads: Sequence[Workload]) -> float:
    """The longest walltime of all jobs, in seconds."""
    return max(job.walltime for workload in workloads for job in workload.jobs)


class ScaledScheduler(ChoosingScheduler):
    """One whose `ScaledEncoder` depends on the settings and on the longest times, and not on the cluster."""

    encoder_type: ClassVar[type[ScaledEncoder]]

    def make_encoder(  # type: ignore[override]  # each scheduler has its own options
        self,
        settings: Any,
        cores: int,
        workloads: Sequence[Workload],
        *,
        max_runtime: float | None = None,
        max_wait: float = HALF_A_DAY,
    ) -> ScaledEncoder:
        """The encoder for jobs.

        Args:
            settings: of the environment.
            cores: hosts of the cluster.
            workloads: jobs, all with a walltime.
            max_runtime: seconds; by default the longest walltime of the workloads.
            max_wait: seconds that count as 1.
        """
        longest = longest_walltime(workloads) if max_runtime is None else max_runtime
        fields = self.encoder_fields(settings, cores)
        return self.encoder_type(**fields, max_runtime=float(longest), max_wait=float(max_wait))


def check_window(where: str, **slots: int) -> None:
    """Refuse a window without slots. Raises ConfigError, naming the settings."""
    if not any(slots.values()):
        are, names = "are both" if len(slots) > 1 else "is", [f"env.{name}" for name in slots]
        raise ConfigError(f"{where}{' and '.join(names)} {are} 0: the window needs a job")


@kernel
def place_of(cycles, head, tail, slot):
    """Where in the queue the job of a slot is; -1 where it is empty or there is no such slot."""
    length = cycles.nb_queued
    if slot < 0 or slot >= head + tail:
        return -1
    if slot < head:
        return slot if slot < length else -1
    # from the newest back, but not into the head: no job is in two slots
    at = length - 1 - (slot - head)
    return at if at >= head else -1


@kernel
def slot_begun(state, cycles, head, tail, starts, by, room):
    """The slot whose job began first by a time (seconds), of those that need at most so many hosts; -1 for none."""
    slot, first = -1, np.inf
    # who began first comes first; of those that began together, who is first in the window
    for candidate in range(head + tail):
        at = place_of(cycles, head, tail, candidate)
        if at < 0 or state.size[cycles.queue[at]] > room:
            continue
        begun = starts[cycles.queue[at]]
        if begun <= by and begun < first:
            slot, first = candidate, begun
    return slot


@kernel
def see_window(state, cycles, head, tail, max_runtime, max_wait, endless, only_fitting, out, mask):
    """Write four numbers per slot and the mask of the slots; returns whether any of their jobs can start.

    A slot's numbers: cores over all cores, requested runtime over the longest, time waited over the longest wait, and a
    flag. Without a job all four are 0, and the slot is masked.

    Args:
        endless: whether waits have a scale without an end, w / (w + longest), or are 1 from the longest on.
        only_fitting: whether slots of jobs that cannot start are masked, and the last number says that there is a job;
            else the mask says that there is a job, and the last number whether it can start.
    """
    # the first jobs, from the oldest on, then the last ones, from the newest back; empty slots end each part
    length = cycles.nb_queued
    shown = min(length, head)
    some = False
    for slot in range(shown):
        job = cycles.queue[slot]
        some |= _see_slot(state, cycles, max_runtime, max_wait, endless, only_fitting, job, slot, out, mask)
    _empty_slots(shown, head, out, mask)
    shown = head + min(length - shown, tail)
    for slot in range(head, shown):
        job = cycles.queue[length - 1 - (slot - head)]
        some |= _see_slot(state, cycles, max_runtime, max_wait, endless, only_fitting, job, slot, out, mask)
    _empty_slots(shown, head + tail, out, mask)
    return some


@kernel
def _see_slot(state, cycles, max_runtime, max_wait, endless, only_fitting, job, slot, out, mask):
    """Write one slot's numbers and mask; returns whether its job can start."""
    begin, size = JOB_FEATURES * slot, state.size[job]
    can = size <= cycles.nb_free
    out[begin] = size / len(cycles.until)
    out[begin + 1] = min(state.expected_runtime[job] / max_runtime, 1.0)
    wait = state.now - state.submit_time[job]
    out[begin + 2] = wait / (wait + max_wait) if endless else min(wait / max_wait, 1.0)
    # with the mask for "fits" the flag says "is there", and the other way round: both are known either way
    out[begin + 3] = can or only_fitting
    mask[slot] = can or not only_fitting
    return can


@kernel
def _empty_slots(begin, end, out, mask):
    """Slots without a job: zeros, and masked."""
    for i in range(JOB_FEATURES * begin, JOB_FEATURES * end):
        out[i] = 0.0
    for slot in range(begin, end):
        mask[slot] = 0


# Confidence in users: which share of their walltimes their last jobs used.
#
# Casagrande et al., DeepScheduling (AINA 2020). Users are kept in an open hash table.

_RECENT = 20  # jobs of a user that tell what share of a walltime the next one uses, as DeepScheduling has it


class Confidence(Bundle):
    """What a memory needs for the kernels here. J jobs, K >= 2 J places for users, a power of two."""

    user: I4  # (K,) numbers of users, -1 where there is none
    last: I4  # (K,) the job of each that ended last
    confidence: F8  # (K,) mean share of their walltimes that its last jobs used
    previous: I4  # (J,) the job of the same user that ended before, -1 for none


def new_confidence(jobs: int) -> dict[str, I4 | F8]:
    """The arrays of a `Confidence` with room for so many jobs, nobody being known."""
    places = 1 << (2 * jobs).bit_length()
    return {
        "user": np.full(places, -1, np.int32),
        "last": np.zeros(places, np.int32),
        "confidence": np.zeros(places),
        "previous": np.full(jobs, -1, np.int32),
    }


def longer_confidence(memory: Any, jobs: int) -> dict[str, I4 | F8]:
    """The arrays of a memory's `Confidence` with room for more jobs."""
    longer = Confidence(**new_confidence(jobs))
    longer.previous[: len(memory.previous)] = memory.previous
    # places depend on the number of places: users are put in again
    for at in np.flatnonzero(memory.user >= 0).tolist():
        place = place_of_user(longer, int(memory.user[at]))
        for name in ("user", "last", "confidence"):
            getattr(longer, name)[place] = getattr(memory, name)[at]
    return longer.arrays()


@kernel
def place_of_user(memory, user):
    """Where a user is, or is to be."""
    mask = len(memory.user) - 1
    # Knuth's multiplier for 16 bits (2 ** 16 over the golden ratio): users are often numbered in a row
    at = (user * 40503) & mask
    while memory.user[at] != user and memory.user[at] >= 0:
        at = (at + 1) & mask
    return at


@kernel
def confidence_in(state, memory, job):
    """Mean share of their walltimes that the last jobs of the job's user took; 1 where there are none."""
    user = state.user[job]
    if user < 0:
        return 1.0
    at = place_of_user(memory, user)
    return memory.confidence[at] if memory.user[at] == user else 1.0


@kernel
def learn_from(state, memory, job):
    """Note which share of its walltime an ended job used, and the mean of its user's last ones."""
    user = state.user[job]
    if user < 0 or not state.end_time[job] >= state.start_time[job]:
        return
    at = place_of_user(memory, user)
    memory.previous[job] = memory.last[at] if memory.user[at] == user else -1
    memory.user[at], memory.last[at] = user, job
    # summed again along the list of the user's jobs: a running mean of the last ones would need them all the same
    total, count = 0.0, 0
    while job >= 0 and count < _RECENT:
        total += min((state.end_time[job] - state.start_time[job]) / state.walltime[job], 1.0)
        count += 1
        job = memory.previous[job]
    memory.confidence[at] = total / count
