"""The engine does what Batsim 5.0.0-rc2 did: given its recorded decisions, it asks its questions, writes its files."""

import csv
import json
import math
import shlex

import pytest
from helpers.batsim5 import build_engine5, replay5
from helpers.golden import SCENARIOS_5, SESSIONS_5

from decision.files.outputs_read import read_run_record
from decision.files.outputs_write import write_run_of_5
from decision.model.errors import PolicyError
from decision.protocol import Message
from decision.protocol import messages as m

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
    assert len(read_run_record(tmp_path / "out").jobs.id) > 0


def _cells(path):
    if path.suffix == ".json":
        return [(name, str(value)) for name, value in json.loads(path.read_text()).items()]
    return list(csv.reader(path.open()))


def _same(wanted, found):
    try:
        return math.isclose(float(wanted), float(found), rel_tol=1e-5, abs_tol=1e-6)
    except ValueError:
        return wanted == found


PLATFORM = """<?xml version='1.0'?>
<platform version="4.1"><zone id="z" routing="Vivaldi"><host id="master_host" coordinates="0 0 0" speed="1Gf"/>
<host id="n0" coordinates="0 0 0" speed="1Gf, 0.5Gf"/></zone></platform>
"""


@pytest.mark.parametrize(
    ("submitted", "event", "first"),
    [
        ([0], None, []),
        ([0, 1], None, ["w0!j"]),
        ([0, 0], None, ["w0!j", "w1!j"]),
        ([1, 0], 0, ["w1!j", "ee0!0"]),
        ([0], 5, ["w0!j"]),
        ([1], 0, []),
    ],
)
def test_what_comes_at_0_s_is_in_the_first_message_where_several_submit(tmp_path, submitted, event, first):
    (tmp_path / "platform.xml").write_text(PLATFORM)  # recorded with Batsim 5.0.0-rc2
    words = ["batsim"]
    for number, time in enumerate(submitted):
        job = {"id": "j", "subtime": time, "res": 1, "profile": "p"}
        profiles = {"p": {"type": "DelayProfile", "delay": 1}}
        work = {"nb_res": 1, "jobs": [job], "profiles": profiles}
        (tmp_path / f"w{number}.json").write_text(json.dumps(work))
        words += ["-w", f"w{number}.json"]
    if event is not None:
        (tmp_path / "events.txt").write_text(json.dumps({"type": "generic", "timestamp": event, "data": "x"}) + "\n")
        words += ["--ee", "events.txt"]
    (tmp_path / "command.txt").write_text(" ".join(words))
    engine = build_engine5(tmp_path)
    engine.greet(m.Features())
    told = [event for event in engine.ask().events if isinstance(event, m.JobSubmitted | m.ExternalEvent)]
    assert [e.data.job_id if isinstance(e, m.JobSubmitted) else e.data.id for e in told] == first


def test_hosts_change_their_speed_where_energy_is_not_simulated(tmp_path):
    (tmp_path / "platform.xml").write_text(PLATFORM)
    (tmp_path / "command.txt").write_text("batsim")
    engine = build_engine5(tmp_path)
    engine.greet(m.Features())
    engine.ask()
    switch = m.SetResourceState(0.0, m.SetResourceStateData("0", "1", at_once=True))
    engine.answer(Message(0.0, (switch,)))
    assert [type(event) for event in engine.ask().events] == [m.ResourceStateChanged]


@pytest.mark.parametrize(
    ("parts", "aborts"), [(["flop"], True), (["flop", "delay"], True), (["delay", "flop"], False), (["delay"], False)]
)
def test_a_forced_stop_while_a_job_computes_is_refused_as_batsim_aborts(tmp_path, parts, aborts):
    (tmp_path / "platform.xml").write_text(PLATFORM)  # tried with Batsim 5.0.0-rc2: exit 134, or 0
    flop = {"type": "ParallelTaskHomogeneousProfile", "cpu": 1e11, "com": 0}
    flop["generation_strategy"] = "DefinedAmountsUsedForEachValue"
    profiles = {"flop": flop, "delay": {"type": "DelayProfile", "delay": 100}}
    profiles["p"] = {"type": "SequentialCompositionProfile", "seq": parts, "repeat": 1}
    work = {"nb_res": 1, "jobs": [{"id": "j", "subtime": 0, "res": 1, "profile": "p"}], "profiles": profiles}
    (tmp_path / "w.json").write_text(json.dumps(work))
    (tmp_path / "command.txt").write_text("batsim -w w.json")
    engine = build_engine5(tmp_path)
    engine.greet(m.Features())
    while (question := engine.ask()).now < 5:
        told = any(isinstance(event, m.JobSubmitted) for event in question.events)
        starts = [m.ExecuteJob(question.now, m.ExecuteJobData("w0!j", "0"))] if told else []
        call = m.CallMeLater(question.now, m.CallMeLaterData(5.0, "c", "s"))
        engine.answer(Message(question.now, (*starts, call)))
    engine.answer(Message(question.now, (m.ForceStop(question.now),)))
    if aborts:
        with pytest.raises(PolicyError, match="t=5 s: ForceSimulationStop while w0!j computes"):
            engine.ask()
    else:
        assert isinstance(engine.ask().events[0], m.SimulationEnds)
