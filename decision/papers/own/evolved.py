"""What programs that evolve a shipped policy share: results that are kept, and the checkpoint at the end."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from decision import __version__
from decision.formats.files import write_files
from decision.formats.input_facts import InputFacts
from decision.learn.checkpoint import Manifest, write_checkpoint
from decision.learn.config import load_config
from decision.learn.weights import dump_numbers
from decision.learned import ParametricScheduler
from decision.model.record import Floats
from decision.runs.chunks import key_of


def kept(file: Path, make: Callable[..., Floats], *given: Any) -> Floats:
    """What is made of what is given; kept in the file, and made again where that is of something else.

    Args:
        file: of the result and of what identifies it: what was given, and this package's sources.
        make: makes it.
        given: arrays, numbers and texts, on which alone the result depends.
    """
    key = key_of(msgspec.json.encode(given, enc_hook=np.ndarray.tolist))
    if file.exists() and (before := msgspec.json.decode(file.read_bytes(), type=_Kept)).key == key:
        return np.array(before.found)
    found = make(*given)
    write_files({file: [msgspec.json.encode(_Kept(key, found.tolist()))]})
    return found


class _Kept(msgspec.Struct, frozen=True):
    key: str
    found: list[Any]


def write_evolved(
    path: Path,
    record: ParametricScheduler,
    weights: Floats,
    learned: Mapping[str, Any],
    *,
    hosts: int,
    platform: str,
    workloads: Sequence[InputFacts],
    changes: Sequence[str] = (),
    seed: int = 0,
    scores: Mapping[str, float] | None = None,
) -> None:
    """Write the checkpoint of weights that were evolved.

    Args:
        path: of the file.
        record: whose weights they are; its preset has the same name.
        weights: in the shape of the record's.
        learned: what the section learn of the preset really was; ``steps`` is the manifest's, too.
        hosts: of the platform.
        platform: what it was, for people.
        workloads: what was learned from.
        changes: other changes of the preset.
        seed: of the evolution.
        scores: of the manifest.
    """
    config = load_config(
        record.name, [*changes, *(f"learn.{name}={value}" for name, value in learned.items())], seed=seed
    )
    manifest = Manifest(
        decision=__version__,
        algorithm=config.algorithm,
        config=config,
        encoder=dict(record.sees),
        nb_hosts=hosts,
        platform=InputFacts(name=platform, sha256=""),
        workloads=tuple(workloads),
        steps=learned["steps"],
        scores=dict(scores or {}),
    )
    write_checkpoint(path, manifest, dump_numbers(weights))
