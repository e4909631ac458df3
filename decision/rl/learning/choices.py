"""Files of choices: what policies did, for `bc`, `crr` and `sac` to learn from.

A file keeps where episodes began and how long each job of them waited, as policies scheduled them; whatever a network
sees is computed again from that (`decision.rl.envs.demonstrations`). Hence 200,000 transitions take less than a
megabyte, and the same file teaches every scheduler whose episodes are of the same jobs.
"""

import warnings
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any

import gymnasium
import msgspec
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from decision import __version__
from decision.files.outputs_read import read_jobs
from decision.files.text import InputFacts, Text, file_facts, write_files
from decision.files.workload import Selection
from decision.model.errors import ConfigError, InputError
from decision.model.record import FinalState
from decision.model.workload import Workload
from decision.rl.envs import Setup
from decision.rl.envs.demonstrations import NOTHING, Demonstrations, Schedule, record_schedules, replay_schedules
from decision.rl.envs.gym import observation_space

from .checkpoint import Number, open_zip, read_packed
from .config import TrainConfig

_FORMAT = 2
_HEAD = "choices.json"
_NUMBERS = {  # members, and what they are of
    **dict.fromkeys(("first", "jobs", "transitions", "rests", "origin", "part"), "<i8"),
    **dict.fromkeys(("wait", "rest_wait"), "<f8"),
}
_MOST_BYTES = 64 << 20  # of the file
_MOST_UNPACKED = 256 << 20  # bytes of a member
DAMAGED = "the file is damaged: copy it again, or collect again"


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A policy, and how many choices are of it."""

    policy: Text
    episodes: Number
    transitions: Number  # decisions and starts


class Choices(msgspec.Struct, frozen=True, kw_only=True):
    """What a file of choices says about itself."""

    format: int = _FORMAT
    decision: Text  # the package's version
    platform: InputFacts
    workload: InputFacts
    events: tuple[InputFacts, ...] = ()  # supplies of power
    selection: Selection  # of its jobs
    placed: Annotated[int, msgspec.Meta(ge=1, le=2**62)]  # jobs that an episode places
    online: bool  # whether others come after those
    seed: Number
    sources: tuple[Source, ...]


def write_choices(
    path: Path,
    schedules: Sequence[Schedule],
    setup: Setup,
    files: Sequence[InputFacts],
    selection: Selection,
    sources: tuple[Source, ...],
    seed: int,
) -> None:
    """Write a file of choices next to the target and rename it; the same content gives the same bytes.

    Raises:
        ConfigError: if it cannot be written.
    """
    head = Choices(
        decision=__version__,
        platform=files[0],
        workload=files[1],
        events=tuple(files[2:]),
        selection=selection,
        placed=setup.rules.jobs,
        online=bool(setup.rules.gives_up),
        seed=seed,
        sources=sources,
    )
    submit = setup.trace.truth.submit_time
    waits = [schedule.start - submit[schedule.first :][: len(schedule.start)] for schedule in schedules]
    rests = np.concatenate([schedule.rests for schedule in schedules])
    came = [submit[schedule.first + schedule.rests[:, 0].astype(int)] for schedule in schedules]
    numbers = {
        "first": np.array([schedule.first for schedule in schedules]),
        "jobs": np.array([len(schedule.start) for schedule in schedules]),
        "transitions": np.array([schedule.transitions for schedule in schedules]),
        "wait": np.maximum(np.concatenate(waits), 0.0),  # less is rounding
        "rests": np.array([len(schedule.rests) for schedule in schedules]),
        "origin": rests[:, 0],
        "part": rests[:, 1],
        "rest_wait": np.maximum(rests[:, 2] - np.concatenate(came), 0.0),  # since the first submission
    }
    archive = BytesIO()
    with zipfile.ZipFile(archive, "w") as zipped:
        members = {name: numbers[name].astype(kind).tobytes() for name, kind in _NUMBERS.items()}
        for name, content in {_HEAD: msgspec.json.encode(head), **members}.items():
            zipped.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    write_files({path: [archive.getvalue()]})


def read_choices(path: Path) -> tuple[Choices, dict[str, NDArray[Any]]]:
    """What a file says about itself, and its numbers by name.

    Raises:
        InputError: if it cannot be read, or is not a file of choices.
    """
    data = read_packed(path, _MOST_BYTES)
    try:
        if len(data) > _MOST_BYTES:
            raise zipfile.BadZipFile
        with open_zip(data) as zipped:
            head = msgspec.json.decode(_member(zipped, _HEAD), type=Choices)
            numbers = {name: np.frombuffer(_member(zipped, name), kind) for name, kind in _NUMBERS.items()}
    except Exception:  # zipfile raises errors of many kinds for bytes that are damaged
        raise InputError(f"{path}: this is not a file of choices; decision collect makes them") from None
    first, jobs, wait = numbers["first"], numbers["jobs"], numbers["wait"]
    rests, again = numbers["rests"], numbers["rest_wait"]
    fits = len(first) == len(jobs) == len(rests) == len(numbers["transitions"]) > 0 and jobs.min() >= 1
    fits = fits and rests.min() >= 0 and len(numbers["origin"]) == len(numbers["part"]) == len(again)
    fits = fits and int(jobs.astype(object).sum()) == len(wait) and int(rests.astype(object).sum()) == len(again)
    if head.format != _FORMAT or not fits or (wait < 0).any() or (again < 0).any():
        raise InputError(f"{path}: its numbers do not fit together; {DAMAGED}")
    return head, numbers


def _member(zipped: zipfile.ZipFile, name: str) -> bytes:
    member = zipped.getinfo(name)
    if member.file_size > _MOST_UNPACKED or member.compress_type != zipfile.ZIP_DEFLATED:
        raise zipfile.BadZipFile
    with zipped.open(member) as file:
        return file.read(member.file_size + 1)


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


# Recorded choices as a Minari data set, for learners of other libraries.


def check_minari(name: str) -> None:
    """Refuse to export before anything is recorded.

    Raises:
        ConfigError: if Minari, or what it writes files with, is not installed, takes no such name, or has such a data
            set.
    """
    for package in ("minari", "h5py"):
        if find_spec(package) is None:
            raise ConfigError(f"{package} is not installed: pip install 'minari[hdf5]'", field="minari")
    import minari
    from minari.dataset.minari_dataset import parse_dataset_id

    try:
        parse_dataset_id(name)
    except ValueError:
        raise ConfigError(f"{name!r}: Minari names data sets GROUP/NAME-v0", field="minari") from None
    if name in minari.list_local_datasets():
        raise ConfigError(f"Minari has a data set {name} already; choose another name", field="minari")


def export_minari(
    name: str, schedules: Sequence[Schedule], setup: Setup, policies: str, paths: Mapping[str, Path]
) -> int:
    """Write what an environment saw, chose and paid; `minari.load_dataset` reads it by name.

    The valid actions of a step, of which Minari's format knows nothing, are ``infos["action_mask"]``.

    Args:
        name: of the data set: ``GROUP/NAME-v0``.
        schedules: the episodes.
        setup: of their environment.
        policies: that chose, for people.
        paths: of the files that make the environment again, by its options' names; empty where they do not.

    Returns:
        The number of its episodes.
    """
    import minari

    encoder = setup.encoder
    buffers = _episodes(replay_schedules(setup, schedules), [schedule.first for schedule in schedules])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # on an author's name, address and code
        minari.create_dataset_from_buffers(
            name,
            buffers,
            env=_specification(setup, paths),
            action_space=spaces.Discrete(encoder.actions),
            observation_space=observation_space(encoder, as_dict=False),
            algorithm_name=policies,
            description=f"choices of {policies} as {encoder.name} sees them, by batsim-decision {__version__}",
            data_format="hdf5",
        )
    return len(buffers)


def _episodes(seen: Demonstrations, first: Sequence[int]) -> list[Any]:
    """Minari's buffers; episodes, each with its first job, in which nothing was chosen are left out."""
    from minari.data_collector import EpisodeBuffer

    ends = np.flatnonzero(seen.action == NOTHING)
    begins = np.concatenate([[0], ends[:-1] + 1])
    buffers: list[Any] = []
    for begin, end, job in zip(begins.tolist(), ends.tolist(), first, strict=True):
        if end == begin:
            continue
        over = np.zeros(end - begin, np.bool_)
        over[-1] = True
        terminated = seen.terminated[begin:end]
        buffers.append(
            EpisodeBuffer(
                id=len(buffers),
                options={"first": job},
                observations=seen.observation[begin : end + 1],
                actions=seen.action[begin:end],
                rewards=seen.reward[begin:end].tolist(),
                terminations=terminated.tolist(),
                truncations=(over & ~terminated).tolist(),
                infos={"action_mask": seen.mask[begin : end + 1].astype(np.int8)},
            )
        )
    return buffers


def _specification(setup: Setup, paths: Mapping[str, Path]) -> Any:
    """How Gymnasium makes the environment again; None where it cannot."""
    if not paths:
        return None
    files = {name: str(path.resolve()) for name, path in paths.items()}
    spec = gymnasium.spec(f"decision/{setup.scheduler.env_id}-v0")
    options = msgspec.to_builtins(setup.settings)
    kwargs = {"encoder": setup.encoder.name, **options, **files}
    return replace(spec, kwargs=kwargs, max_episode_steps=setup.rules.steps)
