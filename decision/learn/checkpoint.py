"""Checkpoints: one zip of a manifest, which anybody can read, and the network's weights.

This module needs no torch; `decision.learn.weights` reads and writes the weights.
"""

import hashlib
import zipfile
import zlib
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec

from decision.formats.files import write_files
from decision.model.errors import InputError

from .config import TrainConfig

FORMAT = 1
_MANIFEST, _WEIGHTS = "manifest.json", "weights.pt"


class InputFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was learned from."""

    name: str
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a checkpoint says about itself."""

    format: int = FORMAT
    decision: str  # the package's version
    algorithm: str
    config: TrainConfig
    encoder: dict[str, Any]  # fields of a `decision.features.Encoder`: what turned states into observations
    nb_hosts: int  # of the platform that was learned on
    platform: InputFacts
    workloads: tuple[InputFacts, ...]
    steps: int  # learned so far
    scores: dict[str, float] = {}  # means over the last episodes of the training


def write_checkpoint(path: Path, manifest: Manifest, weights: bytes) -> None:
    """Write a checkpoint beside and rename it; the same content gives the same bytes."""
    archive = BytesIO()
    with zipfile.ZipFile(archive, "w") as zipped:
        text = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
        for name, content in ((_MANIFEST, text), (_WEIGHTS, weights)):
            zipped.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    write_files({path: [archive.getvalue()]})


def read_manifest(path: Path) -> Manifest:
    """What a checkpoint says about itself.

    Raises:
        InputError: if it cannot be read or is no checkpoint of this package.
    """
    return _decode(path, _read(path)[_MANIFEST])


def read_checkpoint(path: Path) -> tuple[Manifest, bytes]:
    """Manifest and weights, the latter as torch saved them. Raises InputError."""
    parts = _read(path)
    return _decode(path, parts[_MANIFEST]), parts[_WEIGHTS]


def read_packed(path: Path) -> bytes:
    """The content of a file that may be a zip, which readers of other inputs refuse. Raises InputError."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path and its permissions") from None


def file_facts(path: Path) -> InputFacts:
    """Name and hash of a file. Raises InputError."""
    return InputFacts(name=path.name, sha256=hashlib.sha256(read_packed(path)).hexdigest())


def _read(path: Path) -> Mapping[str, bytes]:
    try:
        with zipfile.ZipFile(BytesIO(read_packed(path))) as zipped:
            return {name: zipped.read(name) for name in (_MANIFEST, _WEIGHTS)}
    except (zipfile.BadZipFile, zlib.error, KeyError, EOFError, NotImplementedError):
        raise InputError(f"{path}: this is no checkpoint of decision; decision train makes them") from None


def _decode(path: Path, text: bytes) -> Manifest:
    try:
        written = msgspec.json.decode(text, type=dict)
        if written.get("format") != FORMAT:
            made = f"format {written.get('format')}, made by decision {written.get('decision')}"
            raise InputError(f"{path}: the checkpoint has {made}; this decision reads format {FORMAT}")
        return msgspec.convert(written, Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {_MANIFEST}: {error}; the checkpoint is damaged") from None
