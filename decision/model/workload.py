"""Jobs, the profiles that say what they do, and workloads.

A `Job` is what a scheduler may know: it has no runtime. What a job really does is its profile,
which a policy cannot see (the engine turns profiles into `decision.engine.truth.Truth`).
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from pandas import DataFrame

    from .trace import Reading, Trace

# Batsim writes an id into the job's JSON with a regular expression, without escaping it, and aborts at what comes out
_UNLOADABLE = re.compile(r"""[\x00-\x1f"(),|}\\]|\$[&`']""")


def unloadable_part(job_id: str) -> str:
    """The first characters of a job's id that Batsim cannot load; empty if it can."""
    match = _UNLOADABLE.search(job_id)
    return match[0] if match else ""


class Worth(msgspec.Struct, frozen=True, gc=False):
    """What a job is worth to its owner, and until when; Batsim only forwards these fields.

    nan where the job does not say it: it has no value, no QoS, no deadline, and is expected to run for its walltime.
    """

    value: float = math.nan  # of a job that ends, in any unit
    qos: float = math.nan  # percent, in (0, 100]: quality of service
    deadline: float = math.nan  # seconds since the simulation began
    expected: float = math.nan  # seconds that it is expected to run


def _worth_fields(worth: Worth) -> dict[str, float]:
    """The fields of a job's JSON object that say its worth, whole numbers as such."""
    known = {name: number for name, number in msgspec.structs.asdict(worth).items() if not math.isnan(number)}
    return {
        name: int(number) if number.is_integer() and name != "deadline" else number for name, number in known.items()
    }


class Job(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A job as it is submitted.

    `id` is opaque and unique in a run: ``w0!12``, the workload's name and the job's name in it.
    """

    id: str
    submit_time: float  # seconds
    size: int  # requested number of hosts ("res" in Batsim's JSON)
    walltime: float = math.inf  # seconds; inf where the job has none
    profile: str = ""  # name of a profile of the same workload
    user: str = ""
    estimate: float = math.nan  # seconds that the job itself says it will run; nan where it does not
    worth: Worth | None = None  # None where it says nothing of that
    source: bytes | None = None  # the job's JSON object as the file has it, where the reader was asked to keep it
    extra: Mapping[str, Any] | None = None  # further fields to write, which Batsim only forwards: {"value": 3}

    @property
    def workload(self) -> str:
        """The part of the id before ``!``."""
        return self.id.partition("!")[0]

    @property
    def name(self) -> str:
        """The part of the id after ``!``."""
        return self.id.partition("!")[2]

    def fields(self, written_id: str) -> dict[str, Any]:
        """The job's JSON object as Batsim has it, without what it only forwards."""
        fields: dict[str, Any] = {
            "id": written_id,
            "subtime": self.submit_time,
            "res": self.size,
            "profile": self.profile,
        }
        if self.walltime != math.inf:
            fields["walltime"] = self.walltime
        if self.user:
            fields["user"] = self.user
        if not math.isnan(self.estimate):
            fields["estimate"] = self.estimate
        return fields if self.worth is None else fields | _worth_fields(self.worth)


class Delay(msgspec.Struct, frozen=True):
    """Takes `duration` seconds whatever the hosts."""

    duration: float  # seconds, > 0
    exit_code: int = 0


class ParallelHomogeneous(msgspec.Struct, frozen=True):
    """Each host computes `flops` and sends `bytes` to each other host."""

    flops: float  # flop per host
    bytes: float  # byte per pair of hosts
    exit_code: int = 0


class ParallelHomogeneousTotal(msgspec.Struct, frozen=True):
    """`flops` and `bytes` in all, spread evenly over the hosts."""

    flops: float  # flop in all
    bytes: float  # byte in all
    exit_code: int = 0


class Parallel(msgspec.Struct, frozen=True):
    """Host i computes ``flops[i]`` and sends ``bytes[i * n + j]`` to host j."""

    flops: tuple[float, ...]  # (n,) flop
    bytes: tuple[float, ...]  # (n * n,) byte, row by row
    exit_code: int = 0


class Composed(msgspec.Struct, frozen=True):
    """The profiles named in `sequence`, one after the other, `repeat` times."""

    sequence: tuple[str, ...]
    repeat: int = 1
    exit_code: int = 0


class Foreign(msgspec.Struct, frozen=True):
    """A profile that only Batsim can simulate (SMPI, storage, messages): kept as it came."""

    type: str
    fields: dict[str, Any]
    exit_code: int = 0


Profile = Delay | ParallelHomogeneous | ParallelHomogeneousTotal | Parallel | Composed | Foreign


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs and their profiles, under one name (``w0``)."""

    name: str
    jobs: Sequence[Job]
    profiles: Mapping[str, Profile]
    nb_res: int  # hosts that the workload was made for
    path: str = ""  # the file it came from
    description: str = ""
    profile_sources: Mapping[str, bytes] = {}  # each profile's JSON as the file has it, where kept
    dropped: Mapping[str, int] = {}  # jobs and lines of the source that were left out, by reason
    dropped_lines: Mapping[str, tuple[int, ...]] = {}  # and of a log the first of these lines, by reason
    unix_start: float | None = None  # when 0 s was, in seconds since 1970 (UTC), where that is known
    time_zone: float = 0.0  # seconds that the machine's clock is ahead of UTC
    trace: "Trace | None" = None  # what was recorded of the jobs; for people and measures, not for who decides
    reading: "Reading | None" = None  # of a log: how it was read
    notes: Sequence[str] = ()  # what its reader has to say: where hosts are from, how many jobs have no walltime

    def to_frame(self, speed: float | None = None) -> "DataFrame":
        """The jobs as a pandas DataFrame, a row each, which `decision.simulate` takes for a workload, too.

        Columns are ``id`` (the part after ``!``), ``submit_time``, ``size``, ``runtime``, ``walltime`` (inf where it is
        none), ``user`` and ``profile``; of a log also ``recorded_wait`` and of ``partition``, ``account``, ``group``
        and ``qos`` those that it says. Times are seconds, what is not known is nan or "".

        Args:
            speed: flop/s of the hosts, for the run times of jobs that compute; without it, where some do, all are nan.

        Raises:
            ConfigError: if pandas is not installed.
        """
        from .demand import job_frame

        return job_frame(self, speed)

    def __repr__(self) -> str:
        where = f" of {self.path.rpartition('/')[2]}" if self.path else ""
        return f"<{type(self).__name__}: {self.name}{where}, {len(self.jobs):,} jobs for {self.nb_res:,} hosts>"

    def _repr_html_(self) -> str:
        from .demand import jobs_html

        return jobs_html(self)


def used_profiles(profiles: Mapping[str, Profile], names: Iterable[str]) -> set[str]:
    """The named profiles and all that they are composed of."""
    used: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in used:
            continue
        used.add(name)
        profile = profiles[name]
        if isinstance(profile, Composed):
            waiting.extend(profile.sequence)
    return used


def rest_name(name: str, nth: int) -> str:
    """The name of the nth rest of a job, which is what was left when it was suspended; or of its profile."""
    return f"{name}#{nth}"


GENERIC = "generic"  # type of the events of Batsim 5, which have a text
# Types of the generic events that Batsim only forwards, and we know
POWER_SUPPLY = "power_supply"  # how many hosts may compute
CARBON, PRICE = "carbon_intensity", "energy_price"  # what a kWh of energy emits (g) or costs
FORWARDED = (POWER_SUPPLY, CARBON, PRICE)


class MachineEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happens to the platform from outside, at a known time."""

    timestamp: float  # seconds
    type: str  # "machine_available", "machine_unavailable", one of FORWARDED, or another name, which is only forwarded
    hosts: tuple[int, ...] = ()  # ids; of a POWER_SUPPLY how many may compute, and how many will by step, as expected
    value: float = 0.0  # of CARBON and PRICE: per kWh, from now on
    source: bytes = b""  # the event's JSON object as the file has it
