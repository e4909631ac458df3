"""Files of choices, written and read: their numbers, and what they are of."""

import zipfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from decision import __version__
from decision.envs import Setup
from decision.envs.demonstrations import Schedule
from decision.formats.files import write_files
from decision.formats.input_facts import InputFacts, Text
from decision.formats.selection import Selection
from decision.model.errors import InputError

from .checkpoint import Number, open_zip, read_packed

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
    """What one policy gave."""

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
    waits = [each.start - submit[each.first :][: len(each.start)] for each in schedules]
    rests = np.concatenate([each.rests for each in schedules])
    came = [submit[each.first + each.rests[:, 0].astype(int)] for each in schedules]
    numbers = {
        "first": np.array([each.first for each in schedules]),
        "jobs": np.array([len(each.start) for each in schedules]),
        "transitions": np.array([each.transitions for each in schedules]),
        "wait": np.maximum(np.concatenate(waits), 0.0),  # less is rounding
        "rests": np.array([len(each.rests) for each in schedules]),
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
