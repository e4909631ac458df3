"""JSON schemas of the TOML files that users write, for their editors: made from what reads these files.

``decision/data/schemas`` has them as files; ``python -m decision.cli.schemas FOLDER`` writes them again.
"""

import inspect
import re
import sys
from pathlib import Path
from typing import Any, get_args

import msgspec

from decision.files.accounting.tables import TableMapping
from decision.rl.learning.config import ALGORITHM, LearnConfig, NetworkConfig, TrainConfig
from decision.rl.schedulers.base import records

from .command import long_name
from .declared import Value

Schema = dict[str, Any]
_DRAFT = {"$schema": "http://json-schema.org/draft-07/schema#"}  # the one that Taplo reads


def schemas() -> dict[str, Schema]:
    """The schema of each kind of file, by the name that its own file has."""
    return {
        "train.schema.json": _training(),
        "compare.schema.json": _options("compare"),
        "columns.schema.json": {
            **_DRAFT,
            **_struct(TableMapping),
            "title": "Columns of a table",
            "description": "decision workload convert --columns FILE.toml",
        },
    }


def write_schemas(folder: Path) -> None:
    """Write them into a folder."""
    for name, schema in schemas().items():
        (folder / name).write_bytes(msgspec.json.format(msgspec.json.encode(schema), indent=1) + b"\n")


def field_comments(kind: type) -> dict[str, str]:
    """What the source says of each of a struct's fields, in a comment at its line, those of its bases first."""
    comments: dict[str, str] = {}
    for each in reversed(kind.__mro__[:-1]):
        if "__annotations__" in vars(each) and each.__module__.startswith("decision"):
            lines = [re.match(r" {4}(\w+): .*?  # (.*)", line) for line in inspect.getsource(each).splitlines()]
            comments |= {found[1]: found[2] for found in lines if found}
    return {name: comments[name] for name in kind.__struct_fields__ if name in comments}  # type: ignore[attr-defined]


def _training() -> Schema:
    """Of a preset, as `decision.rl.learning.config.load_config` takes it: the scheduler says what env has."""
    own = {name: record for name, record in records().items() if type(record).__module__.startswith("decision.")}
    learn = [_struct(kind) for kind in get_args(LearnConfig)]
    for each in learn:  # the scheduler says it where the file does not
        each["required"] = [name for name in each.get("required", ()) if name != ALGORITHM]
    settings = {name: _struct(record.Settings) for name, record in own.items()}
    known = {
        key: {"description": what.get("description", "")}
        for env in settings.values()
        for key, what in env["properties"].items()
    }
    fields: Schema = {
        "scheduler": {
            "description": "What is learned; dbf by default. Others than these are of installed packages.",
            "anyOf": [{"enum": sorted(own)}, {"type": "string"}],
        },
        # Editors that do not follow the rules below know the names from here
        "env": {"description": "What it sees and does.", "type": "object", "properties": known},
        "network": _struct(NetworkConfig),
        "learn": {"description": "How it is learned.", "anyOf": learn},
        "seed": {"description": "Of weights, episodes and draws.", "type": "integer", "minimum": 0},
    }
    rules: list[Schema] = []
    for name, env in settings.items():
        named: Schema = {"properties": {"scheduler": {"const": name}}}
        if name != TrainConfig.__struct_defaults__[0]:
            named["required"] = ["scheduler"]
        rules.append({"if": named, "then": {"properties": {"env": env}}})
    title = {"title": "A training", "description": "decision train --preset FILE.toml"}
    return {**_DRAFT, **title, "type": "object", "properties": fields, "allOf": rules, "additionalProperties": False}


def _struct(kind: type) -> Schema:
    """Of a struct, with what its source says of each field."""
    made: Schema = msgspec.json.schema(kind)
    found: Schema = made["$defs"][kind.__name__]
    for name, text in field_comments(kind).items():
        found["properties"][name]["description"] = text
    return found


def _options(command: str) -> Schema:
    """Of the options of a command, as `decision.cli.command.read_config` takes them."""
    from .app import app

    found = app.commands[command]
    title = {"title": f"Options of decision {command}", "description": f"decision {command} --config FILE.toml"}
    fields = {}
    for option in found.explained():
        name = long_name(option.opts).removeprefix("--")
        if name != "config":
            one: Schema = {"type": "string"}  # a path
            if option.is_flag:
                one = {"type": "boolean"}
            elif isinstance(option.type, Value) and option.type.choices:
                one = {"enum": list(option.type.choices)}
            elif isinstance(option.type, Value):
                one = {"type": {int: "integer", float: "number"}.get(option.type.kind, "string")}
                bounds = (("minimum", option.type.least), ("maximum", option.type.most))
                one |= {word: bound for word, bound in bounds if bound is not None}
            what = {"anyOf": [one, {"type": "array", "items": one}]} if option.multiple else one
            fields[name] = {"description": re.sub(r"\[/?bold\]", "", option.help or ""), **what}
    return {**_DRAFT, **title, "type": "object", "properties": fields, "additionalProperties": False}


if __name__ == "__main__":
    write_schemas(Path(sys.argv[1]))
