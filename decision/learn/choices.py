"""Files of choices: what policies did, for `bc`, `crr` and `sac` to learn from.

A file keeps where episodes began and how long each job of them waited, as policies scheduled them; whatever a network
sees is computed again from that (`decision.envs.demonstrations`). Hence 200,000 transitions take less than a megabyte,
and the same file teaches every scheduler whose episodes are of the same jobs.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from decision.envs import Setup
from decision.envs.demonstrations import Demonstrations, Schedule, record_schedules, replay_schedules
from decision.formats.input_facts import InputFacts, file_facts
from decision.formats.outputs_read import read_jobs
from decision.formats.selection import Selection
from decision.model.errors import ConfigError, InputError
from decision.model.record import FinalState
from decision.model.workload import Workload

from .choices_file import DAMAGED, Source, read_choices
from .config import TrainConfig


def collect(
    policies: Mapping[str, float], setup: Setup, transitions: int, seed: int
) -> tuple[tuple[Source, ...], list[Schedule]]:
    """Schedules of several policies, each with its share of the transitions.

    Args:
        policies: name and share of each; shares add up to 1.
        setup: of the environment whose episodes are scheduled.
        transitions: of all together, at least; episodes are whole.
        seed: of the episodes' first jobs, and of the policies.

    Raises:
        ConfigError: if there is no such policy.
    """
    sources, schedules = [], []
    for policy, share in policies.items():
        own = record_schedules(policy, setup, max(round(share * transitions), 1), seed)
        sources.append(Source(policy=policy, episodes=len(own), transitions=sum(each.transitions for each in own)))
        schedules += own
    return tuple(sources), schedules


def whole_episode(config: TrainConfig, workload: Workload) -> TrainConfig:
    """The config whose episodes are whole runs of a workload. Raises ConfigError if its scheduler has no such."""
    try:
        env = msgspec.structs.replace(config.env, jobs=len(workload.jobs))
        if hasattr(env, "online"):
            env = msgspec.structs.replace(env, online=False)
    except TypeError:
        raise ConfigError(f"{config.scheduler} has no episodes that are whole runs; choose another preset") from None
    return msgspec.structs.replace(config, env=env)


def run_starts(place: Path) -> tuple[dict[str, float], int]:
    """When each job of a run was started (seconds), by id; and how many replies there were, which its files do not say.

    Raises:
        InputError: if the files of the run cannot be read.
    """
    jobs = read_jobs(place)
    begun = np.flatnonzero(jobs.final_state != FinalState.REJECTED)
    return {jobs.id[row]: float(jobs.start_time[row]) for row in begun.tolist()}, 0


def from_session(
    name: str, starts: Mapping[str, float], replies: int, setup: Setup
) -> tuple[tuple[Source, ...], list[Schedule]]:
    """The schedule of a recorded session, as one episode.

    Args:
        name: of the session, for the file.
        starts: when each job was started, seconds, by id.
        replies: of its scheduler.
        setup: of the environment, whose episodes are whole runs.

    Raises:
        InputError: if it started a job that the workload does not have, or none.
    """
    for job in starts.keys() - set(setup.trace.ids):
        raise InputError(f"{name}: it starts job {job}, which the workload does not have; name the workload it was of")
    if not starts:
        raise InputError(f"{name}: no job was started in it; record a session with jobs")
    start = np.array([starts.get(job, np.nan) for job in setup.trace.ids])
    transitions = replies + len(starts)
    return (Source(policy=name, episodes=1, transitions=transitions),), [Schedule(0, start, transitions)]


def replay_choices(
    path: Path, setup: Setup, files: Sequence[InputFacts], selection: Selection
) -> tuple[InputFacts, Demonstrations]:
    """The episodes of a file as an environment sees them, and what the file is.

    Args:
        path: of the file.
        setup: of the environment.
        files: of the platform and the workload that the environment is of.
        selection: of the workload's jobs.

    Raises:
        InputError: if the file cannot be read.
        ConfigError: if it is of another platform, workload, selection or kind of episode, or its scheduler cannot learn
            from schedules.
    """
    head, numbers = read_choices(path)
    for what, then, now in (
        ("platform", head.platform, files[0]),
        ("workload", head.workload, files[1]),
        ("supply of power", head.events, tuple(files[2:])),
        ("selection of jobs", head.selection, selection),
        ("number of placed jobs", head.placed, setup.rules.jobs),
        ("setting online", head.online, bool(setup.rules.gives_up)),
    ):
        if now != then:
            words = f"{_in_words(then)}, now {_in_words(now)}"
            raise ConfigError(f"{path}: it was collected with another {what}: {words}; collect again")
    return file_facts(path), replay_schedules(setup, _schedules(path, setup, numbers))


def _in_words(fact: Any) -> str:
    """What a file of choices says about what it was collected with."""
    match fact:
        case InputFacts():
            return f"{fact.name} (sha256 {fact.sha256[:8]})"
        case tuple():
            return " and ".join(map(_in_words, fact)) or "none"
        case Selection():
            return ", ".join(f"{name} {value}" for name, value in fact.texts().items())
    return str(fact)


def _schedules(path: Path, setup: Setup, numbers: Mapping[str, NDArray[Any]]) -> list[Schedule]:
    """What the numbers of a file are. Raises InputError if an episode has a job that there is not."""
    submit, schedules = setup.trace.truth.submit_time, []
    columns = (numbers[name].tolist() for name in ("first", "jobs", "transitions", "rests"))
    at = rest = 0
    for first, jobs, transitions, rests in zip(*columns, strict=True):
        own, parts = slice(at, at + jobs), slice(rest, rest + rests)
        at, rest = own.stop, parts.stop
        origin = numbers["origin"][parts]
        if not 0 <= first < setup.trace.jobs or first + jobs > len(submit):
            raise InputError(f"{path}: an episode begins with job {first:,}, which there is not; {DAMAGED}")
        if ((origin < 0) | (origin >= jobs)).any():
            raise InputError(f"{path}: an episode has what is left of a job that it does not have; {DAMAGED}")
        start = submit[first : first + jobs] + numbers["wait"][own]
        begun = submit[first + origin] + numbers["rest_wait"][parts]
        schedules.append(Schedule(first, start, transitions, np.column_stack([origin, numbers["part"][parts], begun])))
    return schedules
