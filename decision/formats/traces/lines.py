"""The lines of a text file, in parts, so that a large file never stands in memory."""

import codecs
import os
from collections.abc import Iterator

from decision.formats.files import read_blocks
from decision.model.errors import InputError

_LONGEST_LINE = 16 << 20  # bytes: the nodes of a job, or a script in one line


def line_parts(path: str | os.PathLike[str]) -> Iterator[tuple[int, list[str]]]:
    """Parts of some megabytes: the number of the first line, from 1, and the lines without their ends.

    Bytes that are no UTF-8 become ``\\ufffd``.

    Raises:
        InputError: if the file cannot be read, is empty or is not text.
    """
    number = 1
    for part, block in enumerate(read_blocks(path, _LONGEST_LINE)):
        text = block if part else block.removeprefix(codecs.BOM_UTF8)
        if b"\0" in text:
            line = number + text.count(b"\n", 0, text.index(b"\0"))
            raise InputError(f"{path}, line {line}: a zero byte, so this is not a text file; is it the right file?")
        lines = text.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
        if not lines[-1]:
            lines.pop()
        yield number, lines
        number += len(lines)
    if number == 1:
        raise InputError(f"{path}: the file is empty")
