"""The examples and the notebook run as they are."""

import json
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import decision as d
from decision.files import write_workload

EXAMPLES = Path(__file__).parents[2] / "examples"
NEEDED = {
    "batsim_and_evalys": ("torch", "evalys.jobset"),
    "evalys": ("torch", "evalys.jobset"),
    "gridgym": ("gymnasium",),
    "log_training": ("torch",),
    "own_environment": ("sb3_contrib",),
    "own_ppo": ("torch", "gymnasium"),
    "tour": ("gymnasium", "torch", "optuna", "pyarrow", "pandas", "matplotlib"),
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


def test_what_the_example_learned_is_served_to_a_batsim(tmp_path):
    """`decision serve` by the example's own function, and the stand-in in Batsim's place."""
    pytest.importorskip("sb3_contrib")
    shutil.copy(EXAMPLES / "own_environment.py", tmp_path)
    example = runpy.run_path("own_environment.py")
    model = example["MaskablePPO"]("MlpPolicy", example["SchedulerVecEnv"](8, setup=example["ENV"].setup), n_steps=8)
    model.save("own.zip")
    (platform, log) = (d.load_platform(example["CASE"][0]).path, d.load_workload(example["CASE"][1]))
    write_workload("jobs.json", msgspec.structs.replace(log, jobs=log.jobs[:40]))
    scripts, endpoint = Path(sys.executable).parent, f"ipc://{tmp_path}/batsim"
    served = [str(scripts / "decision"), "serve", "--policy", "./own_environment.py:learned", "-s", endpoint]
    standin = [str(scripts / "decision-batsim"), "-p", platform, "-w", "jobs.json", "-s", endpoint, "-e", "out/out"]
    with subprocess.Popen(served) as serving:
        subprocess.run(standin, check=True, timeout=120)
        assert serving.wait(60) == 0
    here = d.simulate("cluster256", "jobs.json", example["learned"]())
    assert d.read_run("out").jobs.start_time.tolist() == here.jobs.start_time.tolist()


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


def test_there_are_ten_scripts_and_two_notebooks():
    assert len(list(EXAMPLES.glob("*.py"))) == 10
    assert len(list(EXAMPLES.glob("*.ipynb"))) == 2
