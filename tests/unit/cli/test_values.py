"""Values of options: what is taken, what it becomes, and what is said of the rest."""

import enum
import inspect
from pathlib import Path
from typing import Annotated, Literal

import click
import pytest

from decision.cli.command import command_of
from decision.cli.declared import Argument, Option


class Colour(enum.StrEnum):
    RED = "red"
    DARK_BLUE = "dark-blue"


def read(kind, option, *words, default=None):
    """What a command with one option gets."""
    got = []

    def command(value):
        got.append(value)

    annotation = Annotated[kind, option]
    value = inspect.Parameter("value", inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
    command.__signature__ = inspect.Signature([value])
    command_of(command, "command").main(list(words), standalone_mode=False)
    return got[0]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (int, "7", 7),
        (int, "-7", -7),
        (int, "007", 7),
        (int, "7.0", 7),
        (int, "1_000", 1000),
        (int, "9" * 20, int("9" * 20)),
        (float, "7", 7.0),
        (float, "1e3", 1000.0),
        (float, "inf", float("inf")),
        (str, "", ""),
        (str, "7", "7"),
        (Path, "../nowhere", Path("../nowhere")),
        (Colour, "dark-blue", Colour.DARK_BLUE),
        (Literal["smoke", "full"], "full", "full"),
    ],
)
def test_a_value_is_read(kind, text, value):
    found = read(kind | None if isinstance(kind, type) else kind, Option("--value"), f"--value={text}")
    assert (type(found), found) == (type(value), value)
    assert read(list[kind], Option("--value"), f"--value={text}", f"--value={text}") == [value, value]


@pytest.mark.parametrize(
    ("kind", "option", "text", "complaint"),
    [
        (int, Option("--value"), "7.5", "'7.5' is not a whole number."),
        (int, Option("--value"), "1e3", "'1e3' is not a whole number."),
        (int, Option("--value", min=1, max=3), "0", "must be greater than or equal to 1."),
        (int, Option("--value", min=1, max=3), "4", "must be less than or equal to 3."),
        (float, Option("--value", min=0.5), "nan", "must be greater than or equal to 0.5."),
        (float, Option("--value"), "x", "'x' is not a number."),
        (Colour, Option("--value"), "RED", "'RED' is not one of 'red', 'dark-blue'."),
        (Path, Option("--value", exists=True), "nowhere", "Path 'nowhere' does not exist."),
        (Path, Option("--value", dir_okay=False), "/", "File '/' is a directory."),
        (str, Option("--value", parser=float), "x", "could not convert string to float: 'x'"),
    ],
)
def test_a_wrong_value_is_refused(kind, option, text, complaint):
    with pytest.raises(click.BadParameter) as refused:
        read(kind, option, "--value", text)
    assert refused.value.format_message() == f"Invalid value for '--value': {complaint}"


def test_defaults_are_read_as_values_are():
    assert read(list[str] | None, Option("--value")) is None
    assert read(list[str], Option("--value"), default=["a"]) == ["a"]
    assert read(float, Option("--value", parser=float), default="2") == 2.0
    assert read(list[Path] | None, Argument()) is None
    assert read(Colour, Option("--value", case_sensitive=False), "--value", "RED") is Colour.RED
    assert read(bool, Option("--value"), default=False) is False
    assert read(bool, Option("--value"), "--value", default=False) is True
    pairs = read(list[tuple[str, str]] | None, Option("-v", "--value"), "-v", "a", "", "--value", "b", "c")
    assert pairs == [("a", ""), ("b", "c")]


def test_commands_by_typer_are_taken():
    """Of packages that add reproductions by entry points."""
    typer = pytest.importorskip("typer")
    assert read(int, typer.Option("--value", "-n", min=1, help="A number."), "-n", "2") == 2
    assert read(list[str], typer.Argument(help="Words.", metavar="WORD"), "a", "b") == ["a", "b"]
    with pytest.raises(click.BadParameter, match="must be greater than or equal to 1"):
        read(int, typer.Option("--value", min=1), "--value", "0")
