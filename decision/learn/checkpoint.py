"""Checkpoints: one zip of a manifest, which anybody can read, and the network's weights.

This module needs no torch; `decision.learn.weights` reads and writes the weights.
"""

import os
import re
import zipfile
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from decision.formats.files import write_files
from decision.formats.input_facts import InputFacts, Text
from decision.formats.selection import Selection
from decision.learned.registry import encoder_of_format_1
from decision.model.errors import ConfigError, InputError

from .config import TrainConfig, config_of_format_1, config_of_format_2

FORMAT = 3  # that is written; those before are read, too
MANIFEST, WEIGHTS = "manifest.json", "weights.pt"
MOST_BYTES = 256 << 20  # of the file
REMEDY = "the file is damaged: copy it again, or train again"
_LIMITS = {MANIFEST: 1 << 20, WEIGHTS: MOST_BYTES}  # bytes of the unpacked members
_MEMBER = b"PK\x01\x02"  # before each member's entry in a zip's directory
_END, _END_BYTES = b"PK\x05\x06", 22  # how a zip without a comment ends
_MOST_MEMBERS = 10_000
_SHOWN = 200  # characters

Number = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a policy must do to be deployed."""

    name: Text
    found: float
    most: float  # what passes

    @property
    def passed(self) -> bool:
        """Whether it did."""
        return self.found <= self.most


class GateCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What ``decision gates`` found on a log."""

    decision: Text  # the package's version
    platform: InputFacts
    workload: InputFacts
    events: tuple[InputFacts, ...] = ()  # supplies of power
    selection: Selection
    jobs: Number
    gates: tuple[Gate, ...]

    @property
    def passed(self) -> bool:
        """Whether all gates are passed."""
        return all(gate.passed for gate in self.gates)


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a checkpoint says about itself."""

    format: int = FORMAT
    decision: Text  # the package's version
    algorithm: Text
    config: TrainConfig
    encoder: dict[Text, Text | int | float]  # fields of a `decision.learned.Encoder`, or what a policy's numbers see
    nb_hosts: Annotated[int, msgspec.Meta(ge=1, le=2**31)]  # of the platform that was learned on
    platform: InputFacts
    workloads: tuple[InputFacts, ...]
    events: tuple[InputFacts, ...] = ()  # supplies of power
    selection: Selection | None = None  # of their jobs; None: an older version, which did not say
    data: InputFacts | None = None  # file of recorded choices that were learned from
    steps: Number  # learned so far
    scores: dict[Text, float] = {}  # means over the last episodes of the training
    gates: tuple[GateCheck, ...] = ()  # one for each log on which they were checked


def write_checkpoint(path: Path, manifest: Manifest, weights: bytes) -> None:
    """Write a checkpoint next to the target and rename it; the same content gives the same bytes.

    Raises:
        ConfigError: if it cannot be written, or the weights are more than `read_checkpoint` takes.
    """
    if len(weights) > _LIMITS[WEIGHTS]:
        found = f"the weights are {len(weights):,} bytes, and a checkpoint has at most {_LIMITS[WEIGHTS]:,}"
        raise ConfigError(f"{path}: {found}; choose a smaller network.hidden")
    archive = BytesIO()
    with zipfile.ZipFile(archive, "w") as zipped:
        text = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
        for name, content in ((MANIFEST, text), (WEIGHTS, weights)):
            zipped.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    write_files({path: [archive.getvalue()]})


def read_manifest(path: Path) -> Manifest:
    """What a checkpoint says about itself.

    Raises:
        InputError: if it cannot be read or is not a checkpoint of this package.
    """
    return _decode(path, _read(path)[MANIFEST])


def read_checkpoint(path: Path) -> tuple[Manifest, bytes]:
    """Manifest and weights, the latter as torch saved them. Raises InputError."""
    parts = _read(path)
    return _decode(path, parts[MANIFEST]), parts[WEIGHTS]


def read_numbers(where: str, data: bytes) -> NDArray[np.float64]:
    """The numbers of a `ParametricScheduler` as `decision.learn.weights.dump_numbers` wrote them, without torch.

    Torch's format is a zip in which a tensor's numbers are a member of their own, as they are in memory.

    Raises:
        InputError: if there is another tensor, or a number is not finite.
    """
    try:
        with open_zip(data) as zipped:
            (member,) = (each for each in zipped.infolist() if "/data/" in each.filename)
            if member.file_size > len(data) or member.compress_type != zipfile.ZIP_STORED:
                raise zipfile.BadZipFile
            numbers = np.frombuffer(zipped.read(member), "<f8").astype(float)
    except Exception:  # zipfile raises errors of many kinds for bytes that are damaged
        raise InputError(f"{where}: {WEIGHTS}: cannot be read as numbers; {REMEDY}") from None
    if not np.isfinite(numbers).all():
        raise InputError(f"{where}: {WEIGHTS}: a number is NaN or infinite; {REMEDY}")
    return numbers


def read_packed(path: Path, most: int | None = None) -> bytes:
    """The content of a file that may be a zip, which readers of other inputs refuse; one byte over `most` at most.

    Raises:
        InputError: if it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return file.read() if most is None else file.read(min(os.fstat(file.fileno()).st_size, most) + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path and its permissions") from None


def open_zip(data: bytes) -> zipfile.ZipFile:
    """A zip whose directory is of a usual size. Raises zipfile.BadZipFile, and whatever else zipfile does."""
    if data.count(_MEMBER) > _MOST_MEMBERS:
        raise zipfile.BadZipFile
    return zipfile.ZipFile(BytesIO(data))


def shown(value: Any) -> str:
    """A value of a file as a part of a one-line message: printable and short."""
    text = str(value)
    line = "".join(c if c.isprintable() else " " for c in text[: _SHOWN + 1])
    return line if len(text) <= _SHOWN else f"{line[:_SHOWN]}..."


def _read(path: Path) -> Mapping[str, bytes]:
    data = read_packed(path, MOST_BYTES)
    if len(data) > MOST_BYTES:
        raise InputError(
            f"{path}: more than {MOST_BYTES:,} bytes; a checkpoint has at most so many; is it the right file?"
        )
    try:
        if not data[-_END_BYTES:].startswith(_END):
            raise zipfile.BadZipFile  # bytes behind its end, which zipfile would leave out
        with open_zip(data) as zipped:
            return {name: _unpack(path, zipped, name) for name in _LIMITS}
    except InputError:
        raise
    except Exception as error:  # zipfile raises errors of many kinds for bytes that are damaged
        if MANIFEST.encode() in data and not isinstance(error, KeyError):  # KeyError: a whole zip without weights
            raise InputError(f"{path}: {REMEDY}") from None
        raise InputError(f"{path}: this is not a checkpoint of decision; decision train makes them") from None


def _unpack(path: Path, zipped: zipfile.ZipFile, name: str) -> bytes:
    """A member, whose size is checked before it is unpacked; no more than that size is."""
    member, most = zipped.getinfo(name), _LIMITS[name]
    if member.file_size > most:
        raise InputError(f"{path}: {name}: {member.file_size:,} bytes unpacked, at most {most:,} are read; {REMEDY}")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise NotImplementedError
    with zipped.open(member) as file:
        return file.read(member.file_size + 1)


def _decode(path: Path, text: bytes) -> Manifest:
    return decode_manifest(f"{path}: {MANIFEST}", text)


def decode_manifest(where: str, text: bytes | str) -> Manifest:
    """A manifest from its JSON.

    Args:
        where: for messages.
        text: of the present format or one before.

    Raises:
        InputError: if it cannot be used.
    """
    written: dict[str, Any] = {}
    try:
        written = msgspec.json.decode(text, type=dict)
        if (of := written.get("format")) not in range(1, FORMAT + 1) or not isinstance(of, int):
            made = f"format {shown(written.get('format'))}, made by decision {shown(written.get('decision'))}"
            raise InputError(f"{where}: the checkpoint has {made}; this decision reads formats 1 to {FORMAT}")
        if of == 1:
            _upgrade(written, config=config_of_format_1, encoder=encoder_of_format_1)
        if of <= 2:
            _upgrade(written, config=config_of_format_2)
        written["format"] = FORMAT
        return msgspec.convert(written, Manifest)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$.")
        place = place.rstrip("`")
        raise InputError(
            f"{where}: {shown(place or MANIFEST)}: {shown(message)}{_found(written, place)}; {REMEDY}"
        ) from None
    except InputError:
        raise
    except ConfigError as error:
        raise InputError(f"{where}: config: {shown(error)}; {REMEDY}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{where}: {shown(error)}; {REMEDY}") from None


def _upgrade(tree: dict[str, Any], **upgrades: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Bring tables into a newer form; what is damaged stays as it is."""
    tree |= {name: upgrade(tree[name]) for name, upgrade in upgrades.items() if isinstance(tree.get(name), dict)}


def _found(tree: Any, place: str) -> str:
    """What a decoded file has at a place that msgspec names, like ``config.network.hidden[0]``."""
    for key in re.findall(r"[^.\[\]]+", place):
        if isinstance(tree, dict) and key in tree:
            tree = tree[key]
        elif isinstance(tree, list) and key.isdigit():
            tree = tree[int(key)]
        else:  # msgspec names no key of a mapping
            return ""
    return "" if isinstance(tree, dict) else f"; found {shown(repr(tree))}"
