"""What a file was that a run or a training began with."""

import hashlib
import os
import re
from pathlib import Path
from typing import Annotated

import msgspec

from decision.computer.unpacked import is_pipe, unpacked
from decision.model.errors import InputError

Text = Annotated[str, msgspec.Meta(max_length=1000, pattern=r"^[^\x00-\x1f\x7f-\x9f]*\Z")]  # without control characters


class InputFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A file's name, without its folder, and its content's hash."""

    name: Text
    sha256: Text


def printable(text: str) -> str:
    """A text of the user's without control characters and bytes that are no text."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]", "?", text)


def file_facts(path: str | os.PathLike[str]) -> InputFacts:
    """Name and hash of a file. Raises InputError."""
    try:
        source = unpacked(Path(path)) if is_pipe(Path(path)) else Path(path)  # a checkpoint is an archive, as it is
        with source.open("rb") as file:
            return InputFacts(name=printable(Path(path).name), sha256=hashlib.file_digest(file, "sha256").hexdigest())
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path and its permissions") from None
