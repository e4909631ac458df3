"""Values of options without pydantic, of which Typer makes a validator for each option: 0.1 s of each start.

A value that is plainly of its option's type is taken here. Anything else, a wrong one above all, goes to Typer, which
knows more spellings and says what is wrong.
"""

import os
import re
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_origin

_PLAIN_NUMBERS = {int: re.compile("-?[0-9]{1,15}"), float: re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")}


class NotPlainError(Exception):
    """A value is for Typer to judge."""


class PlainValues:
    """Converts an option's values, in the place where Typer keeps what does (a private part of Typer's)."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value that a command gets, the same as Typer's; errors are Typer's."""
        kind, info = param.type_descriptor.annotation, param.type_descriptor.parameter_info
        try:
            if value is None:
                return () if param.multiple or param.nargs == -1 else None
            if get_origin(kind) is not list:
                return plain_value(value, kind, info)
            if isinstance(value, str) or not isinstance(value, Sequence):
                raise NotPlainError
            return [plain_value(each, get_args(kind)[0], info) for each in value]
        except NotPlainError:
            param._runtime_param = None
            return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def plain_value(value: Any, kind: Any, info: Any) -> Any:
    """The value of an option.

    Args:
        value: a text, or already a value of the type.
        kind: the type.
        info: Typer's description of the option: its own parser, its range.

    Raises:
        NotPlainError: if it is not plainly of this type, in this range.
    """
    if info.parser is not None:
        try:
            return info.parser(value)
        except ValueError:
            raise NotPlainError from None
    if kind is str and isinstance(value, str):
        return value
    if kind in _PLAIN_NUMBERS:
        return _number(value, kind, info)
    if kind is Path and isinstance(value, str | Path):
        return _path(Path(value), info)
    if isinstance(kind, type) and issubclass(kind, Enum):
        found = value if isinstance(value, kind) else next((each for each in kind if each.value == value), None)
        if found is not None:
            return found
    raise NotPlainError


def _number(value: Any, kind: Any, info: Any) -> int | float:
    if isinstance(value, str) and _PLAIN_NUMBERS[kind].fullmatch(value):
        value = kind(value)
    if type(value) not in (int, kind) or info.clamp:
        raise NotPlainError
    if (info.min is not None and value < info.min) or (info.max is not None and value > info.max):
        raise NotPlainError
    return kind(value)


def _path(path: Path, info: Any) -> Path:
    """A path of which nothing is asked but that it can be read where it exists."""
    asked = info.exists or info.writable or info.resolve_path or info.path_type is not None
    if asked or not (info.file_okay and info.dir_okay) or (path.exists() and not os.access(path, os.R_OK)):
        raise NotPlainError
    return path
