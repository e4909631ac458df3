"""The engine does what Batsim 5.0.0-rc2 did: given its recorded decisions, it asks its questions, writes its files."""

import csv
import json
import math
import shlex

import pytest
from helpers.batsim5 import build_engine5, replay5
from helpers.golden import SCENARIOS_5, SESSIONS_5

from decision.formats.outputs5 import write_run_of_5
from decision.formats.outputs_read import read_run

OVER_NETWORKS = {"networked_master", "pstate"}  # Batsim's own messages take other ways there


@pytest.mark.parametrize("name", sorted(set(SCENARIOS_5) - OVER_NETWORKS))
def test_the_engine_repeats_a_recorded_session(name, tmp_path):
    folder = SESSIONS_5 / name
    engine = build_engine5(folder)
    assert replay5(engine, folder / "session.jsonl") == []
    words = shlex.split((folder / "command.txt").read_text())
    written = write_run_of_5(
        f"{tmp_path}/out_",
        engine.record(),
        "v5.0.0-rc2",
        machine_states="--trace-machine-state" in words,
        pstate_changes="--trace-pstate-changes" in words,
    )
    names = {path.name for path in written} - {"out_real_exec_info.json"}
    assert names == {path.name for path in folder.glob("out_*")}
    for file in sorted(names):
        wanted, found = (_cells(place / file) for place in (folder, tmp_path))
        assert len(wanted) == len(found), file
        differences = [(a, b) for a, b in zip(wanted, found, strict=True) if not all(map(_same, a, b))]
        assert not differences, (file, differences[0])
    assert len(read_run(tmp_path / "out").jobs.id) > 0


def _cells(path):
    if path.suffix == ".json":
        return [(name, str(value)) for name, value in json.loads(path.read_text()).items()]
    return list(csv.reader(path.open()))


def _same(wanted, found):
    try:
        return math.isclose(float(wanted), float(found), rel_tol=1e-5, abs_tol=1e-6)
    except ValueError:
        return wanted == found
