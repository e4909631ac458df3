"""What callers give, names and paths and objects, as what runs take."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decision.model.errors import ConfigError, mapping, several, some, text, whole
from decision.model.platform import Platform
from decision.model.workload import MachineEvent, Workload

if TYPE_CHECKING:
    from decision.experiments.inputs import PolicyChoice
    from decision.experiments.metric_list import Metric
    from decision.experiments.own_metrics import OwnMetric
    from decision.files.workload import Selection
    from decision.policies import Policy

Source = str | os.PathLike[str]  # a file's path, or the name of a shipped platform or workload
_WALLTIMES = ("requested", "runtime", "none")
OPTIONS_EXAMPLE = '{"guard": "auto"}'


def as_selection(
    jobs: slice | None,
    nodes: int | None,
    walltime: str,
    time_field: int | None,
    missing: str = "none",
    time_zone: str | None = None,
) -> "Selection":
    """Which jobs are used. Raises ConfigError for a range that counts from the end or in steps, and other nonsense."""
    from decision.files.workload import Selection

    if walltime not in _WALLTIMES:
        raise ConfigError(f"walltime: must be requested, runtime or none; found {walltime!r}", field="walltime")
    first, last = 0, None
    if jobs is not None:
        try:
            if not isinstance(jobs, slice) or jobs.step not in (None, 1):
                raise ConfigError("not a range")
            first = 0 if jobs.start is None else whole("jobs", jobs.start)
            last = None if jobs.stop is None else whole("jobs", jobs.stop)
        except ConfigError:
            wanted = "a range like slice(0, 5000), counted from the first job"
            raise ConfigError(f"jobs: must be {wanted}; found {jobs}", field="jobs") from None
    return Selection(
        jobs=(first, last),
        nodes=None if nodes is None else whole("nodes", nodes, 1),
        walltime=walltime,  # type: ignore[arg-type]  # one of them
        missing=text("missing_walltime", missing),
        time_field=None if time_field is None else whole("time_field", time_field, 1),
        time_zone=None if time_zone is None else text("time_zone", time_zone),
    )


def read_platform(given: Platform | Source, energy: bool) -> Platform:
    """The platform that a caller gave, as an object, a path or a shipped name."""
    from decision.files import load_platform

    return given if isinstance(given, Platform) else load_platform(given, energy=energy)


def as_workloads(given: Any, selection: "Selection", platform: Platform) -> list[Workload]:
    """One workload or several, named w0, w1, ... where they are not objects that have a name."""
    from decision.experiments.inputs import check_reading, read_selected
    from decision.files.workload import frame_workload, is_frame
    from decision.model.computer import find_workload

    every = some("workload", given, "workload")
    sources = [
        each if isinstance(each, Workload) else frame_workload(each, f"w{n}") if is_frame(each) else find_workload(each)
        for n, each in enumerate(every)
    ]
    check_reading([source for source in sources if isinstance(source, Path)], selection)
    return [read_selected(each, f"w{n}", selection, platform) for n, each in enumerate(sources)]


def as_events(given: Iterable[MachineEvent] | Source) -> list[MachineEvent]:
    """What happens to the platform from outside."""
    from decision.files import load_events

    if isinstance(given, str | os.PathLike):
        return load_events(given, supply=True)
    events = several(given)
    if not all(isinstance(event, MachineEvent) for event in events):
        raise ConfigError(f"events: must be a file, or MachineEvents; found {given!r}", field="events")
    return events


def is_policy(given: Any) -> bool:
    """Whether it is a policy itself, and not its name. Raises ConfigError if it is neither."""
    if isinstance(given, str):
        return False
    if isinstance(given, type):
        raise ConfigError(f"the policy is a class, not an object: give {given.__name__}() instead", field="policy")
    if not (hasattr(given, "reset") and hasattr(given, "decide")):
        wanted = "a policy's name, or an object with the methods reset and decide"
        raise ConfigError(f"policy: give {wanted}, not an object of type {type(given).__name__}", field="policy")
    return True


def as_options(options: Mapping[str, Any] | None, policies: Sequence[Any]) -> dict[str, str]:
    """The options of policies, as texts. Raises ConfigError where one of these has its own already."""
    settings = {name: str(value) for name, value in mapping("options", options, OPTIONS_EXAMPLE).items()}
    objects = [policy for policy in policies if is_policy(policy)]
    if settings and objects:
        name = type(objects[0]).__name__
        raise ConfigError(f"options: are those of named policies; make {name}(...) with its own", field="options")
    return settings


def read_choice(policy: "str | Policy", options: Mapping[str, Any] | None, seed: int) -> "PolicyChoice":
    """The policy of a run."""
    from decision.experiments.inputs import PolicyChoice

    settings = as_options(options, [policy])
    if isinstance(policy, str):
        return PolicyChoice(policy=policy, settings=settings, seed=whole("seed", seed))
    return PolicyChoice(policy=called(policy), own=policy, seed=whole("seed", seed))


def name_policies(given: Any) -> dict[str, Any]:
    """Policies by name, each once: as a mapping says, or as they say themselves; with a number where several agree.

    A policy's own name is its attribute ``name``, else that of its class; one that is named is called as it was named,
    or as its class says with ``name``.

    Raises:
        ConfigError: if there is none, or one is no policy.
    """
    from decision.experiments.audit import RECORDED
    from decision.policies.registry import told_apart

    if isinstance(given, Mapping):
        some("policies", list(given), "policy")
        for name, policy in given.items():
            text("policies", name)
            if not is_policy(policy) and (policy == RECORDED) != (name == RECORDED):
                raise ConfigError(f"policies: {RECORDED} is what really happened, and keeps its name", field="policies")
        return dict(given)
    every: list[Any] = []
    for each in some("policies", given, "policy"):
        if not any(each is other or (isinstance(each, str) and each == other) for other in every):
            every.append(each)
    return dict(zip(told_apart(map(called, every)), every, strict=True))


def called(policy: Any) -> str:
    """What a policy is called. Raises ConfigError if it is none."""
    from decision.policies.registry import own_name, shown_name

    return (own_name(policy) or type(policy).__name__) if is_policy(policy) else shown_name(policy)


def platform_file(given: Platform | Source, energy: bool, folder: Path) -> Path:
    """The file of a platform; one that is an object, and not as its file says, is written into the folder.

    Raises:
        ConfigError: if the object has what no file of ours can say.
    """
    from msgspec.structs import replace

    from decision.files import load_platform, write_platform
    from decision.model.computer import find_platform

    if not isinstance(given, Platform):
        return find_platform(given)
    path = Path(given.path)
    if path.is_file() and load_platform(path, energy=energy) == given:
        return path
    path = folder / f"{path.stem or 'platform'}.xml"
    write_platform(path, given)
    read = load_platform(path, energy=energy)
    if [replace(host, zone_properties={}) for host in given.hosts] != list(read.hosts):
        raise ConfigError("platform: no file can say all that this object does; give a file", field="platform")
    return path


def as_files(given: Any, folder: Path) -> tuple[Path, ...]:
    """The files of workloads, each once; those that are objects are written into the folder."""
    from decision.files import write_workload
    from decision.files.workload import frame_workload, is_frame
    from decision.model.computer import find_workload

    every = some("workload", given, "workload")
    objects = [is_frame(each) or isinstance(each, Workload) for each in every]
    files = [folder if is_object else find_workload(each) for each, is_object in zip(every, objects, strict=True)]
    for at in (at for at, is_object in enumerate(objects) if is_object):
        workload = frame_workload(every[at]) if is_frame(every[at]) else every[at]
        stem = Path(workload.path).stem or "jobs"
        while any(file.stem == stem for file in files):
            stem += "+"
        files[at] = folder / f"{stem}.json"
        write_workload(files[at], workload)
    return tuple(dict.fromkeys(files))


def read_metrics(given: Any) -> "tuple[list[Metric], list[OwnMetric]]":
    """Metrics by name or by their functions, each once; and those of them that are one's own."""
    from decision.experiments.metric_list import find_metric
    from decision.experiments.own_metrics import own_metric

    every = dict.fromkeys([given] if callable(given) else several(given))
    own_metrics = {
        each: own_metric(each) for each in every if callable(each) or (isinstance(each, str) and ":" in each)
    }
    known = [find_metric(own_metrics[each].name if each in own_metrics else text("metrics", each)) for each in every]
    return known, list(own_metrics.values())
