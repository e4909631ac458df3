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
    "own_environment": ("sb3_contrib",),
    "gridgym": ("gymnasium",),
    "own_ppo": ("torch", "gymnasium"),
    "train_scheduler": ("torch",),
}


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
    pytest.importorskip("gymnasium")
    cells = [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]
    names: dict[str, object] = {"__name__": "__main__"}
    for cell in cells:
        assert cell["outputs"] == []  # they would grow old
        lines = [line for line in cell["source"] if not line.startswith("%")]
        exec(compile("".join(lines), notebook.name, "exec"), names)
    assert names["total"] < 0


def test_there_are_eight_scripts_and_a_notebook():
    assert len(list(EXAMPLES.glob("*.py"))) == 8
    assert len(list(EXAMPLES.glob("*.ipynb"))) == 1
