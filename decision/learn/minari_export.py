"""Recorded choices as a Minari data set, for learners of other libraries."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gymnasium
import msgspec
import numpy as np
from gymnasium import spaces

from decision import __version__
from decision.envs import Setup
from decision.envs.demonstrations import NOTHING, Demonstrations, Schedule, replay_schedules
from decision.envs.vector import observation_space
from decision.model.errors import ConfigError


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
            observation_space=observation_space(encoder.shape, encoder.actions, as_dict=False),
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
