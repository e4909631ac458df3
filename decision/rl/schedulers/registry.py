"""The registry of learned schedulers, and of their observations by name."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from decision.model.errors import ConfigError
from decision.model.hosts import nearest
from decision.model.workload import Workload

from .base import ChoosingScheduler, Encoder, Scheduler

_ENTRY_POINTS = "decision.schedulers"  # group of installed packages' entry points: each is a `Scheduler`

_S = TypeVar("_S", bound=Scheduler)
_RECORDS: dict[str, Scheduler] = {}
# What else knows the records (Gymnasium's registry) hears of later ones, too
_LISTENERS: list[Callable[[Scheduler], None]] = []


def register(scheduler: _S) -> _S:
    """Let a scheduler be trained, evaluated, deployed and listed like those of this package."""
    _RECORDS[scheduler.name] = scheduler
    for listener in _LISTENERS:
        listener(scheduler)
    return scheduler


def for_each_record(listener: Callable[[Scheduler], None]) -> None:
    """Call `listener` with each record, also with those that are registered later."""
    for scheduler in records().values():
        listener(scheduler)
    _LISTENERS.append(listener)


def records() -> Mapping[str, Scheduler]:
    """All schedulers by name; installed packages' ones (entry points) are loaded at the first call."""
    _load_installed()
    return _RECORDS


@functools.cache
def _load_installed() -> None:
    """Once: to look through what is installed takes ten milliseconds."""
    from importlib.metadata import entry_points  # 10 ms of a start

    for point in entry_points(group=_ENTRY_POINTS):
        if point.name not in _RECORDS:
            register(point.load())


def find_scheduler(name: str) -> Scheduler:
    """The scheduler of a name; ``./mine.py:MyScheduler`` and ``module:MyScheduler`` are an `Environment`'s class.

    Raises:
        ConfigError: if there is none.
    """
    known = records()
    if name not in known:
        if ":" in name:
            from .own_record import named_record  # it is a loop over the records, too

            return named_record(name)
        raise ConfigError(f"there is no scheduler {name!r}{nearest(name, known)} (there are {', '.join(known)})")
    return known[name]


def choosing() -> list[ChoosingScheduler]:
    """The schedulers that choose, and so have environments."""
    return [scheduler for scheduler in records().values() if isinstance(scheduler, ChoosingScheduler)]


def find_observation(name: str) -> tuple[ChoosingScheduler, Mapping[str, Any]]:
    """The scheduler whose observation has this name, and the settings that the name stands for.

    Raises:
        ConfigError: if there is none.
    """
    if ":" in name and isinstance(own := find_scheduler(name), ChoosingScheduler):
        return own, {}
    known = {encoder: scheduler for scheduler in choosing() for encoder in scheduler.observations}
    if name not in known:
        raise ConfigError(f"there is no encoder {name!r}{nearest(name, known)} (there are {', '.join(known)})")
    return known[name], known[name].observations[name]


def make_encoder(cores: int, workloads: Sequence[Workload], *, name: str = "dbf", **options: Any) -> Encoder:
    """An encoder for a cluster and its jobs.

    Args:
        cores: hosts of the cluster.
        workloads: jobs, all with a walltime.
        name: of the observation: ``dbf`` (one number per core), ``dbf-pools``, ``rlscheduler``, ``inspector`` or
            another scheduler's.
        options: settings of its scheduler; ``max_runtime`` (seconds, by default the longest walltime of the
            workloads) and ``max_wait`` (seconds that count as 1); and ``pools`` with ``dbf-pools``.

    Raises:
        ConfigError: for a number or name that makes no sense.
    """
    scheduler, fixed = find_observation(name)
    settings, rest = scheduler.read_options({**scheduler.env_options, **options, **fixed})
    return scheduler.make_encoder(settings, cores, workloads, **rest)


def read_encoder(fields: Mapping[str, Any]) -> Encoder:
    """The encoder whose fields (`msgspec.to_builtins`) a checkpoint has.

    Raises:
        ConfigError: if a field is missing or unknown, or the version is another.
    """
    kind = find_observation(str(fields.get("name", "")))[0].encoder_type
    try:
        return msgspec.convert(dict(fields), kind)
    except msgspec.ValidationError as error:
        raise ConfigError(f"the encoder of the checkpoint cannot be read: {error}") from error


def encoder_of_format_1(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an encoder as checkpoints of format 1 have them, in the present form.

    Then all encoders had the same fields, most of which meant nothing to most.
    """
    former = ("cores", "cluster", "head", "tail", "base")
    kinds = {name: scheduler.encoder_type for scheduler in choosing() for name in scheduler.observations}
    kind = kinds.get(str(fields.get("name", "")))
    known = kind.__struct_fields__ if kind else former
    return {name: value for name, value in fields.items() if name in known or name not in former}
