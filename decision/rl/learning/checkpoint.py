"""Checkpoints: one zip of a manifest, which anybody can read, and the network's weights.

This module needs no torch; `decision.rl.learning.weights` reads and writes the weights.
"""

import math
import os
import re
import zipfile
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from decision.files.text import InputFacts, Text, file_facts, write_files
from decision.files.workload import Selection
from decision.model.dates import on_days
from decision.model.errors import ConfigError, InputError, warn_once
from decision.model.workload import Workload
from decision.policies.policy import Policy
from decision.policies.traits import read_spec
from decision.rl.learning import SHIPPED_NAMES, find_checkpoint
from decision.rl.schedulers.base import ParametricScheduler, Scheduler, encoder_of_format_1
from decision.rl.schedulers.deepscheduling import day_range

from .config import TrainConfig, config_of_format_1, config_of_format_2

FORMAT = 3  # that is written; those before are read, too
MANIFEST, WEIGHTS = "manifest.json", "weights.pt"
MOST_BYTES = 256 << 20  # of the file
REMEDY = "the file is damaged: copy it again, or train again"
_LIMITS = {MANIFEST: 1 << 20, WEIGHTS: MOST_BYTES}  # bytes of the unpacked members
_MEMBER = b"PK\x01\x02"  # before each member's entry in a zip's directory
_END, _END_BYTES = b"PK\x05\x06", 22  # how a zip without a comment ends
_MOST_MEMBERS = 10_000  # more are not opened: zipfile reads the directory as a whole
_SHOWN = 200  # characters of a file's text in a message

Number = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a policy must do to be deployed."""

    name: Text
    found: float
    most: float  # what passes

    @property
    def passed(self) -> bool:
        """Whether the policy did it."""
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
    encoder: dict[Text, Text | int | float]  # fields of an `Encoder`, or what a policy's numbers see
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
    """The numbers of a `ParametricScheduler` as `decision.rl.learning.weights.dump_numbers` wrote them, without torch.

    Torch's format is a zip in which a tensor's numbers are a member of their own, as they are in memory.

    Raises:
        InputError: if there is another tensor, or a number is not finite.
    """
    try:
        with open_zip(data) as zipped:
            (member,) = (info for info in zipped.infolist() if "/data/" in info.filename)
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


def kind_of(folder: Path) -> bytes | None:
    """The same for all trainings of one configuration on the same files, whatever their seed and how far they got.

    Args:
        folder: what ``decision train`` wrote.

    Returns:
        None where no checkpoint says what was learned.
    """
    try:
        (checkpoint,) = folder.glob("*.ckpt")
        manifest = read_manifest(checkpoint)
    except (ValueError, InputError):  # none, several, or one that cannot be read
        return None
    config = msgspec.structs.replace(manifest.config, seed=0)
    return msgspec.json.encode(msgspec.structs.replace(manifest, config=config, steps=0, scores={}, gates=()))


# --- Whether a learned policy may be deployed ----------------------------------------------------------------------


def require_unseen(policy: str, workload: Workload) -> str:
    """Refuse to judge a policy on jobs that it was learned from.

    Returns:
        What is not known of that, for people; or "".

    Raises:
        ConfigError: if it was learned from some of them.
        InputError: if the checkpoint or the file cannot be used.
    """
    text = seen_text(policy, workload)
    if seen_jobs(policy, workload):
        raise ConfigError(f"{text}: gates are for jobs that nothing was learned from; choose others", field="select")
    return text


def require_gates(policy: str) -> None:
    """Refuse to deploy a checkpoint that has not passed its gates; any other policy passes.

    A policy that is shipped is known for what it fails, which ``decision policies`` says: there a warning names it.

    Args:
        policy: as ``--policy`` takes it.

    Raises:
        ConfigError: naming what is missing.
        InputError: if the checkpoint cannot be read.
    """
    name = read_spec(policy).name
    checkpoint = find_checkpoint(name)
    if checkpoint is None:
        return
    checks = read_manifest(checkpoint).gates
    failed = [f"{gate.name} on {check.workload.name}" for check in checks for gate in check.gates if not gate.passed]
    if checks and not failed:
        return
    why = f"it fails {failed[0]}" if failed else "its manifest has no gates"
    if name in SHIPPED_NAMES:
        warn_once(f"policy {name}: {why}; decision policies says what shipped policies are for")
        return
    raise ConfigError(
        f"policy {policy}: {why}, so it is not deployed; decision gates checks a checkpoint on your logs, and --force "
        "runs it all the same",
        field="policy",
    )


def seen_jobs(policy: str, workload: Workload) -> int:
    """How many of a workload's jobs a policy is known to be learned from: those of the same number in the same file.

    Days that are made like a cluster's count as seen, all of them, where days like that cluster's were learned from. A
    checkpoint of an older version does not say which jobs of its files it was learned from: `seen_text` says that.

    Args:
        policy: as ``--policy`` takes it; 0 for one that is not learned.
        workload: as it was read from its file.

    Raises:
        InputError: if the checkpoint or the file cannot be used.
    """
    checkpoint = find_checkpoint(read_spec(policy).place)
    path = Path(workload.path)
    if checkpoint is None or not path.is_file():
        return 0
    manifest = read_manifest(checkpoint)
    if _like(manifest, workload):
        return len(workload.jobs)
    if file_facts(path).sha256 not in {facts.sha256 for facts in manifest.workloads}:
        return 0
    if manifest.selection is None:
        return 0
    # which jobs there are does not depend on their walltimes
    learned = replace(manifest.selection, walltime="requested", missing="none").read(path, workload.name)
    if days := getattr(manifest.config.env, "days", ()):
        learned = on_days(learned, day_range(days))
    return len({job.id for job in learned.jobs} & {job.id for job in workload.jobs})


def seen_text(policy: str, workload: Workload) -> str:
    """What is to be said of a policy that is, or may be, judged on jobs that it was learned from; "" of others.

    Raises:
        InputError: if the checkpoint or the file cannot be used.
    """
    checkpoint, path = find_checkpoint(read_spec(policy).place), Path(workload.path)
    if checkpoint is None or not path.is_file():
        return ""
    manifest = read_manifest(checkpoint)
    if name := _like(manifest, workload):
        return f"{policy} was learned from days that are made like those of {name}, as {path} is"
    if seen := seen_jobs(policy, workload):
        jobs = "1 job" if len(workload.jobs) == 1 else f"{len(workload.jobs):,} jobs"
        return f"{policy} was learned from {seen:,} of the {jobs} of {path}"
    if manifest.selection is None and file_facts(path).sha256 in {facts.sha256 for facts in manifest.workloads}:
        return f"{policy} was learned from jobs of {path}; its checkpoint does not say which"
    return ""


def _like(manifest: Manifest, workload: Workload) -> str:
    """The cluster like whose days those of the workload are made, if the policy was learned from such; or ""."""
    names = getattr(manifest.config.env, "like", ())
    return next((name for name in names if f"grid5000-like {name} " in f"{workload.description} "), "")


# Policies of checkpoints that have numbers, and no network: they need no torch.


def parametric_policy(
    path: Path, manifest: Manifest, scheduler: Scheduler, data: bytes, options: Mapping[str, Any] | None = None
) -> Policy:
    """The policy of a checkpoint's numbers.

    Args:
        path: of the checkpoint.
        manifest: it has.
        scheduler: that it is of.
        data: its weights.
        options: that the scheduler knows.

    Raises:
        InputError: if the numbers are damaged.
        ConfigError: if they are of another version than ours, or of a scheduler that is none; or for an option's
            value that does not fit.
    """
    if not isinstance(scheduler, ParametricScheduler):
        raise ConfigError(
            f"{path}: it has {scheduler.name} and is not a policy: use easy,allocation=tree,prices={path}"
        )
    if manifest.encoder != scheduler.sees:
        sees = f"this package's {scheduler.name} {dict(scheduler.sees)}"
        raise ConfigError(f"{path}: it sees {shown(manifest.encoder)}, {sees}; train again")
    numbers = read_numbers(str(path), data)
    if len(numbers) + scheduler.added == math.prod(scheduler.weights):
        numbers = np.append(numbers, np.zeros(scheduler.added))
    try:
        weights = numbers.reshape(scheduler.weights)
    except ValueError:
        needs = " x ".join(map(str, scheduler.weights))
        found = f"there are {len(numbers)} numbers, and {scheduler.name} has {needs}"
        raise InputError(f"{path}: {WEIGHTS}: {found}; {REMEDY}") from None
    return scheduler.policy(weights, path.name, **(options or {}))
