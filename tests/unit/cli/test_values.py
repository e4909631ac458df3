"""Values of options that need no pydantic."""

import typer
from typer._coercion import build_runtime_param

from decision.cli.app import app
from decision.cli.command import PlainValues

TEXTS = ("7", "-7", "007", "7.5", "-0.0", "1e3", "1_000", " 7", "+7", "", "x", "nan", "inf", "9" * 20, "0x1")
MORE = ("true", "easy", "png", "PNG", "requested", "../nowhere", "a\udc80b", "-")


def _parameters(command):
    yield from command.params
    for name in getattr(command, "commands", {}):
        yield from _parameters(command.commands[name])


def _outcome(values, parameter, value):
    try:
        found = values.coerce(value, param=parameter, ctx=None)
    except Exception as error:
        return type(error).__name__, str(error)
    return type(found), str(found), repr(found)


def test_values_and_errors_are_typers():
    """Of each kind of option that a command has, of right texts and wrong ones, and of its default."""
    seen = {}
    for parameter in _parameters(typer.main.get_command(app)):
        described = parameter.type_descriptor
        info = described.parameter_info
        kind = (str(described.annotation), info.min, info.max, info.parser, parameter.multiple, parameter.nargs)
        seen.setdefault(kind, parameter)
    assert len(seen) > 60
    for parameter in seen.values():
        typers = build_runtime_param(parameter.type_descriptor)
        several = parameter.multiple or parameter.nargs == -1
        given = [[text, text] for text in TEXTS + MORE] if several else [*TEXTS, *MORE]
        for value in (*given, parameter.default, None, []):
            quick = _outcome(PlainValues(), parameter, value)
            assert quick == _outcome(typers, parameter, value), (parameter.name, value)
