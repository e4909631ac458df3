"""The examples and the notebook run as they are."""

import json
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NEEDED = {"own_learner": ("sb3_contrib",), "own_reward": ("gymnasium",), "train_scheduler": ("torch",)}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """An empty folder: what examples write is not left in the checkout."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_runs_and_prints(script, capsys):
    for package in NEEDED.get(script.stem, ()):
        pytest.importorskip(package)
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out


@pytest.mark.parametrize("notebook", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.stem)
def test_each_cell_of_a_notebook_runs(notebook):
    pytest.importorskip("gymnasium")
    cells = [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]
    names: dict[str, object] = {"__name__": "__main__"}
    for cell in cells:
        assert cell["outputs"] == []  # they would grow old
        lines = [line for line in cell["source"] if not line.startswith("%")]
        exec(compile("".join(lines), notebook.name, "exec"), names)
    assert names["total"] < 0


def test_there_are_seven_scripts_and_a_notebook():
    assert len(list(EXAMPLES.glob("*.py"))) == 7
    assert len(list(EXAMPLES.glob("*.ipynb"))) == 1
