"""The examples and the notebook run as they are."""

import json
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NEEDED = {
    "batsim_and_evalys": ("torch", "evalys.jobset"),
    "evalys": ("torch", "evalys.jobset"),
    "own_learner": ("sb3_contrib",),
    "own_reward": ("gymnasium",),
    "tour": ("gymnasium",),
    "train_scheduler": ("torch",),
}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """An empty folder: what examples write is not left in the checkout."""
    monkeypatch.chdir(tmp_path)


SLOW = "batsim_and_evalys"  # its notebook does the same, in one process
SCRIPTS = [
    pytest.param(script, id=script.stem, marks=[pytest.mark.nightly] if script.stem == SLOW else [])
    for script in sorted(EXAMPLES.glob("*.py"))
]


@pytest.mark.parametrize("script", SCRIPTS)
def test_an_example_runs_and_prints(script, capsys):
    for package in NEEDED.get(script.stem, ()):
        pytest.importorskip(package)
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out


@pytest.mark.parametrize("notebook", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.stem)
def test_each_cell_of_a_notebook_runs(notebook):
    for package in NEEDED[notebook.stem]:
        pytest.importorskip(package)
    cells = [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]
    names: dict[str, object] = {"__name__": "__main__"}
    for cell in cells:
        assert cell["outputs"] == []  # they would grow old
        lines = [line for line in cell["source"] if not line.startswith("%")]
        exec(compile("".join(lines), notebook.name, "exec"), names)
    if notebook.stem == "tour":
        assert names["total"] < 0


def test_there_are_eight_scripts_and_two_notebooks():
    assert len(list(EXAMPLES.glob("*.py"))) == 8
    assert len(list(EXAMPLES.glob("*.ipynb"))) == 2
