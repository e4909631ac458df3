"""The schemas of TOML files for editors: they are those of the code, and say what the readers say."""

import json
import tomllib
from importlib.resources import files

import pytest

from decision.cli.schemas import schemas
from decision.model.errors import DecisionError
from decision.rl.learning.config import load_config, preset_names

jsonschema = pytest.importorskip("jsonschema")

SHIPPED = files("decision") / "data/schemas"
TRAIN, COMPARE, COLUMNS = (f"{name}.schema.json" for name in ("train", "compare", "columns"))


def errors(schema, text):
    """The paths of what a schema refuses in a TOML text."""
    validator = jsonschema.Draft7Validator(json.loads((SHIPPED / schema).read_text()))
    return ["/".join(map(str, error.path)) for error in validator.iter_errors(tomllib.loads(text))]


@pytest.mark.parametrize("name", schemas())
def test_the_shipped_schemas_are_those_of_the_code(name):
    found = json.loads((SHIPPED / name).read_text())
    jsonschema.Draft7Validator.check_schema(found)
    assert found == json.loads(json.dumps(schemas()[name])), "python -m decision.cli.schemas decision/data/schemas"


@pytest.mark.parametrize("name", preset_names())
def test_every_shipped_preset_is_a_training_by_its_schema(name):
    assert errors(TRAIN, (files("decision.rl.learning") / "presets" / f"{name}.toml").read_text()) == []


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("[env]\nhead = 9\n[learn]\nlr = 1e-4\n[network]\nkind = 'jobs'", None),
        ("[env]\nhead = 'nine'", "env/head"),
        ("[env]\nheads = 9", "env"),
        ("scheduler = 'green'\n[env]\npool = 10", None),
        ("scheduler = 'green'\n[env]\nhead = 9", "env"),
        ("[network]\nkind = 'bird'", "network/kind"),
        ("[learn]\nrate = 1e-4", "learn"),
        ("[learn]\nalgorithm = 'sac'\nupdates = 0.5", None),
        ("[learn]\nalgorithm = 'sac'\nrollout = 5", "learn"),
        ("sed = 3", ""),
    ],
)
def test_a_training_is_refused_by_its_schema_where_the_reader_refuses_it(text, where, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(f"#:schema ./{TRAIN}\n{text}\n")
    assert errors(TRAIN, text) == ([] if where is None else [where])
    if where is None:
        load_config(str(file))
    else:
        with pytest.raises(DecisionError):
            load_config(str(file))


@pytest.mark.parametrize(
    ("schema", "text", "where"),
    [
        (COMPARE, 'platform = "taurus"\nworkload = ["a.json", "b.json"]\npolicy = "easy"\nwindows = 50', []),
        (COMPARE, "windows = '50'", ["windows"]),
        (COMPARE, "windows = -1", ["windows"]),
        (COMPARE, 'walltime = "guessed"', ["walltime"]),
        (COMPARE, "polcy = 'easy'", [""]),
        (COLUMNS, 'submit = "s"\nsize = "n"\nrun = "r"', []),
        (COLUMNS, 'submit = "s"\nsizes = "n"\nrun = "r"', ["", ""]),
    ],
)
def test_options_and_columns_are_refused_by_their_schemas(schema, text, where):
    assert errors(schema, text) == where
