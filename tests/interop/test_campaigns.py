"""The scripts of the guide on campaigns, run as they stand: by a real Slurm, by a stand-in of OAR, by Snakemake."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers import slurm_real
from helpers.golden import ROOT

GUIDE = (ROOT / "docs/guide/campaigns.md").read_text()
SHARES = 2  # where the guide has 10
WINDOWS = 12  # where the guide has 1000

OARSUB = """#!/bin/bash
# What OAR does with "--array N -S SCRIPT", and with one inline script: all at once, on this machine.
if [ "$1" = --array ]; then
  for i in $(seq "$2"); do OAR_ARRAY_INDEX=$i bash "$4" & done; wait
else
  for last; do :; done
  bash -c "$last" >/dev/null 2>&1 & echo "$!" >> "$OAR_PIDS"
  echo "OAR_JOB_ID=$!"
fi
"""
OARDEL = '#!/bin/bash\nfor job; do pkill -P "$job"; kill "$job" 2>/dev/null; done; true\n'


def script(contains):
    """The guide's block with these words, made smaller."""
    (found,) = (block for block in re.findall(r"```\n(.*?)```", GUIDE, re.S) if contains in block)
    smaller = found.replace("--windows 1000", f"--windows {WINDOWS} --length 20 --metric wait").replace(
        "/10", f"/{SHARES}"
    )
    return smaller.replace("range(10)", f"range({SHARES})").replace("array=0-9", f"array=0-{SHARES - 1}")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with the inputs that the guide names, and what one process finds there."""
    monkeypatch.chdir(tmp_path)
    own = [str(tmp_path / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
    monkeypatch.setenv("PATH", os.pathsep.join(own))
    (tmp_path / "bin").mkdir()
    subprocess.run(["decision", "platform", "flat", "--hosts", "16", "-o", "cluster.xml"], check=True)
    lines = [
        f"{n} {40 * n} -1 {300 + 37 * n % 900} {1 + n % 9} -1 -1 {1 + n % 9} 1500 -1 1 1 1 1 1 1 -1 -1"
        for n in range(1, 90)
    ]
    (tmp_path / "log.swf").write_text("; MaxProcs: 16\n; UnixStartTime: 0\n" + "\n".join(lines) + "\n")
    compare("-j", "1", "-o", "alone")
    return tmp_path


def compare(*options, **more):
    command = ["decision", "compare", "-p", "cluster.xml", "-w", "log.swf", "--policy", "easy", "--policy", "sjf+easy"]
    windows = ["--windows", str(WINDOWS), "--length", "20", "--metric", "wait"]  # few pictures
    done = subprocess.run([*command, *windows, *options], capture_output=True, text=True, timeout=300, **more)
    assert done.returncode == 0, done.stderr
    return done


def check(place, folder="campaign"):
    for name in ("runs.csv", "comparison.csv"):
        assert (place / folder / name).read_bytes() == (place / "alone" / name).read_bytes()


@pytest.mark.skipif(bool(slurm_real.missing(slurm_real.DAEMONS)), reason="needs Slurm: apt install slurm-wlm")
def test_a_real_slurm_finds_what_one_process_finds(place):
    (place / "share.sh").write_text(script("#SBATCH"))
    (place / "slurm").mkdir()
    with slurm_real.cluster(place / "slurm", 2) as environment:
        subprocess.run(["sbatch", "share.sh"], env=environment, check=True, capture_output=True)
        until_empty(environment)
        assert len(list((place / "campaign/runs").glob("*.jsonl"))) == SHARES
        compare("-o", "campaign")
        check(place)
        pytest.importorskip("distributed")
        compare("-o", "dask", "--on", "slurm", "-j", "2", "--submit", "--time=0:10:00", env=environment)
        check(place, "dask")
        until_empty(environment)


def until_empty(environment):
    """Wait until no job is in the queue."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        if not subprocess.run(["squeue", "-h"], env=environment, capture_output=True, text=True).stdout:
            return
        time.sleep(0.5)
    raise TimeoutError("jobs stay in Slurm's queue")


def test_oars_scripts_find_what_one_process_finds(place):
    for name, text in (("oarsub", OARSUB), ("oardel", OARDEL)):
        (place / "bin" / name).write_text(text)
        (place / "bin" / name).chmod(0o755)
    (place / "share.sh").write_text(script("OAR_ARRAY_INDEX"))
    subprocess.run(["oarsub", "--array", str(SHARES), "-S", "./share.sh"], check=True, capture_output=True)
    assert len(list((place / "campaign/runs").glob("*.jsonl"))) == SHARES
    compare("-o", "campaign")
    check(place)
    pytest.importorskip("distributed")
    compare("-o", "dask", "--on", "oar", "-j", "2", "--submit", "-l walltime=0:10:00")
    check(place, "dask")


@pytest.mark.skipif(shutil.which("snakemake") is None, reason="needs Snakemake: pip install snakemake")
def test_snakemakes_rules_find_what_one_process_finds(place):
    (place / "Snakefile").write_text(script("rule share"))
    subprocess.run(["snakemake", "-c", "2", "-s", "Snakefile"], check=True, capture_output=True)
    check(place)
