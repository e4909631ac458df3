"""Starts in a Slurm: known answers, queues as Slurm prints them, and what contradicts the case."""

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest

from decision.forecasts.cluster import cluster_starts, held_by, moment_of, suggest
from decision.forecasts.slurm import QueueFacts, draw_absences, slurm_forecast
from decision.model.errors import InputError
from decision.slurm.nodes import Absence
from decision.slurm.queue import new_job, read_queue
from decision.slurm.text import write_date
from tests.helpers.slurm_cases import BEGIN, line, recording, toy

_AT = BEGIN + 4000


def _history() -> list[str]:
    """Jobs of four nodes that took 300 s and 100 s, one right after the other."""
    return [line(n + 1, 404 * (n // 2) + 302 * (n % 2), 4, 20, 100 if n % 2 else 300) for n in range(8)]


def _now() -> list[str]:
    """One that runs since 50 s, and two that wait behind it."""
    waits = {"Start": "Unknown", "End": "Unknown", "ElapsedRaw": "0", "State": "PENDING", "NodeList": "None assigned"}
    running = line(20, 3950, 4, 20, 0, State="RUNNING", End="Unknown")
    return [running, line(21, 3960, 4, 20, 0, **waits), line(22, 3970, 1, 5, 0, **waits)]


def test_a_job_starts_when_the_one_that_runs_ends(tmp_path: Path) -> None:
    case = toy(tmp_path, [*_history(), *_now()])
    said = slurm_forecast(case, case.settings, _AT, futures=40)
    assert said.id == ["21", "22"]
    # 50 s or 250 s are left of the first, and Slurm looks some seconds later
    left = said.starts[:, 0] - _AT
    near = np.minimum(np.abs(left - 50), np.abs(left - 250))
    assert near.max() <= 70
    assert (left > 150).any()
    assert (left < 150).any()


def test_by_limits_the_running_job_takes_all_of_its_limit(tmp_path: Path) -> None:
    case = toy(tmp_path, [*_history(), *_now()])
    said = slurm_forecast(case, case.settings, _AT, by_limits=True)
    assert said.starts[0, 0] - _AT == pytest.approx(1150, abs=70)


def test_the_number_of_threads_and_which_jobs_are_asked_for_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    case = recording("coarse_backfill", cycles=False)
    at = case.jobs[50].submit + 60
    monkeypatch.setattr("decision.forecasts.slurm.available_cores", lambda: 1)
    one = slurm_forecast(case, case.settings, at, futures=12)
    monkeypatch.setattr("decision.forecasts.slurm.available_cores", lambda: 3)
    assert slurm_forecast(case, case.settings, at, futures=12).starts.tolist() == one.starts.tolist()
    single = slurm_forecast(case, case.settings, at, futures=12, asked=QueueFacts(wanted=frozenset((one.id[1],))))
    assert single.id == [one.id[1]]
    assert single.starts[:, 0].tolist() == one.starts[:, 1].tolist()


def test_nodes_that_are_away_come_back_as_others_did(tmp_path: Path) -> None:
    nodes = ("n1", "n2", "n3", "n4")
    past = [Absence(nodes[:1], BEGIN + 100 * n, BEGIN + 100 * n + long) for n, long in enumerate((60, 900, 1200))]
    later = Absence(nodes, _AT + 50, _AT + 5000)
    kept = Absence(nodes, _AT + 100_000, _AT + 100_100, reservation="upkeep")
    case = toy(tmp_path, [*_history(), _now()[1]])
    case = msgspec.structs.replace(case, windows=(*past, Absence(nodes, _AT - 300, _AT + 90_000), later, kept))
    drawn = [draw_absences(case.windows, _AT, np.random.default_rng(seed)) for seed in range(20)]
    assert {each.end - each.begin for absences in drawn for each in absences if not each.reservation} == {900, 1200}
    assert all(kept in absences and later not in absences for absences in drawn)
    said = slurm_forecast(case, case.settings, _AT, futures=32)
    assert set(np.round(said.starts[:, 0] - _AT, -2).tolist()) == {600.0, 900.0}


def test_a_long_queue_is_simulated_with_fewer_plans_and_cycles_to_nearly_the_same_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = {"Start": "Unknown", "End": "Unknown", "ElapsedRaw": "0", "State": "PENDING", "NodeList": "None assigned"}
    queue = [line(30 + n, 3000 + n, 1 + n % 3, 10 + n % 7, 0, **waits) for n in range(60)]
    case = toy(tmp_path, [*_history(), *_now(), *queue])
    exact = slurm_forecast(case, case.settings, _AT, futures=6).starts - _AT
    monkeypatch.setattr("decision.forecasts.slurm.LONG_QUEUE", 40)
    rough = slurm_forecast(case, case.settings, _AT, futures=6).starts - _AT
    assert np.median(np.abs(rough - exact) / (exact + 600)) < 0.05
    assert rough.mean() == pytest.approx(exact.mean(), rel=0.05)


def test_a_recording_is_forecast_without_what_came_later() -> None:
    case = recording("coarse_backfill", cycles=False)
    at = case.jobs[50].submit + 60
    early = [job for job in case.jobs if job.submitted <= at]
    one = slurm_forecast(case, case.settings, at, futures=4)
    two = slurm_forecast(case, case.settings, at, futures=4, jobs=early)
    assert len(one.id) > 2
    assert one.starts.tolist() == two.starts.tolist()


def _printed(tmp_path: Path, waits: str = "22|u|a|p|normal|PENDING|{s}|N/A|5:00|1|1|0||Priority|(null)|0|0:00") -> Path:
    head = "JOBID|USER|ACCOUNT|PARTITION|QOS|STATE|SUBMIT_TIME|START_TIME|TIME_LIMIT|NODES|CPUS|MIN_MEMORY|NODELIST|"
    rows = [
        head + "REASON|DEPENDENCY|PRIORITY|TIME",
        f"20|u|a|p|normal|RUNNING|{write_date(_AT - 50)}|{write_date(_AT - 50)}|20:00|4|4|0|n[1-4]|None|(null)|0|0:50",
        f"21|u|a|p|normal|PENDING|{write_date(_AT - 40)}|N/A|20:00|4|4|0||Resources|(null)|0|0:00",
        waits.format(s=write_date(_AT - 30)),
    ]
    path = tmp_path / "squeue.txt"
    path.write_text("\n".join(rows) + "\n")
    return path


def _shown(tmp_path: Path) -> Path:
    text = ""
    for number, state, since, nodes, limit in ((20, "RUNNING", 50, 4, "00:20:00"), (21, "PENDING", 40, 4, "00:20:00")):
        hosts = "n[1-4]" if state == "RUNNING" else ""
        start = write_date(_AT - since) if state == "RUNNING" else "Unknown"
        reason = "None" if state == "RUNNING" else "Resources"
        ran = "00:00:50" if state == "RUNNING" else "00:00:00"
        text += (
            f"JobId={number} JobName=x\n   UserId=u(1000) GroupId=g(1) MCS_label=N/A\n   Priority=0 Nice=0 Account=a "
            f"QOS=normal\n   JobState={state} Reason={reason} Dependency=(null)\n   RunTime={ran} TimeLimit={limit} "
            f"TimeMin=N/A\n   SubmitTime={write_date(_AT - since)} EligibleTime={write_date(_AT - since)}\n"
            f"   StartTime={start} EndTime=Unknown\n   Partition=p\n   ReqNodeList=(null) ExcNodeList=(null)\n"
            f"   NodeList={hosts}\n   NumNodes={nodes} NumCPUs={nodes} NumTasks={nodes} CPUs/Task=1\n\n"
        )
    path = tmp_path / "scontrol.txt"
    path.write_text(text)
    return path


def _as_json(tmp_path: Path) -> Path:
    number = lambda value: {"set": True, "infinite": False, "number": value}  # noqa: E731
    both = {"user_name": "u", "account": "a", "partition": "p", "qos": "normal", "node_count": number(4)}
    both |= {"cpus": number(4), "time_limit": number(20), "priority": number(0), "dependency": ""}
    jobs = [
        {**both, "job_id": 20, "job_state": ["RUNNING"], "nodes": "n[1-4]", "submit_time": number(_AT - 50)}
        | {"start_time": number(_AT - 50), "state_reason": "None"},
        {**both, "job_id": 21, "job_state": ["PENDING"], "nodes": "", "submit_time": number(_AT - 40)}
        | {"start_time": {"set": False, "number": 0}, "state_reason": "Resources"},
    ]
    path = tmp_path / "squeue.json"
    path.write_text(json.dumps({"jobs": jobs, "last_update": number(_AT)}))
    return path


def test_all_three_ways_of_printing_a_queue_say_the_same(tmp_path: Path) -> None:
    case = toy(tmp_path, _history())
    found = [read_queue(make(tmp_path), case) for make in (_printed, _shown, _as_json)]
    for queue in found:
        assert queue.at == _AT
        running, waiting = queue.jobs[:2]
        assert (running.id, running.hosts, running.start, running.nodes) == ("20", "n[1-4]", _AT - 50, 4)
        assert (waiting.id, waiting.started, waiting.nodes, waiting.limit) == ("21", False, 4, 1200)
        assert queue.reasons["21"] == "Resources"


def test_a_queue_goes_on_as_the_same_moment_of_a_case(tmp_path: Path) -> None:
    case = toy(tmp_path / "history", _history())
    whole = toy(tmp_path / "all", [*_history(), *_now()])
    queue = read_queue(_printed(tmp_path), case)
    from_queue = cluster_starts(moment_of(case, queue.at, queue), futures=20, moments=0)
    from_case = cluster_starts(moment_of(whole, _AT), futures=20, moments=0)
    assert [job.id for job in from_queue.jobs] == ["21", "22"]
    assert [job.by for job in from_queue.jobs] == [job.by for job in from_case.jobs]
    assert [job.held_by for job in from_queue.jobs] == [job.held_by for job in from_case.jobs] == ["nodes", "priority"]


def test_what_the_case_does_not_know_is_named_and_left_out(tmp_path: Path) -> None:
    case = toy(tmp_path, _history())
    queue = read_queue(_printed(tmp_path, "22|u|a|gpu|normal|PENDING|{s}|N/A|5:00|1|1|0||Priority|(null)|0|0:00"), case)
    assert queue.notes == ("job 22 is left out: the case has no partition gpu",)
    queue = read_queue(_printed(tmp_path, "22|u|a|p|normal|PENDING|{s}|N/A|5:00|9|9|0||Priority|(null)|0|0:00"), case)
    assert "asks for 9 nodes, and its partition has 4" in queue.notes[0]
    running = "22|u|a|p|normal|RUNNING|{s}|{s}|5:00|1|1|0|n7|None|(null)|0|0:30"
    assert "the case has no node n7" in read_queue(_printed(tmp_path, running), case).notes[0]


def test_a_file_that_is_no_queue_says_what_to_type(tmp_path: Path) -> None:
    case = toy(tmp_path, _history())
    path = tmp_path / "other.txt"
    path.write_text("JOBID|USER\n1|u\n")
    with pytest.raises(InputError, match=r"columns Partition, .*squeue -a"):
        read_queue(path, case)


def test_a_dependency_and_a_hold_are_what_holds_a_job(tmp_path: Path) -> None:
    waits = {"Start": "Unknown", "End": "Unknown", "ElapsedRaw": "0", "State": "PENDING", "NodeList": "None assigned"}
    rows = [*_history(), *_now(), line(23, 3980, 1, 5, 0, options="-d afterok:20", **waits)]
    rows.append(line(24, 3985, 1, 5, 0, options="--hold", **waits))
    found = held_by(moment_of(toy(tmp_path, rows), _AT))
    assert found == {"21": "nodes", "22": "priority", "23": "a dependency on 20", "24": "held"}


def test_a_new_job_is_forecast_behind_the_others_and_smaller_ones_start_sooner(tmp_path: Path) -> None:
    case = toy(tmp_path, [*_history(), *_now()])
    asked = new_job("-N 4 -t 1:00:00 -A a", _AT, case)
    assert (asked.nodes, asked.limit, asked.account) == (4, 3600, "a")
    moment = moment_of(case, _AT, None, [asked])
    found = cluster_starts(moment, futures=20, moments=0)
    by = {job.id: job.by[0.5] for job in found.jobs}
    assert by["new"] > by["21"]
    for each in suggest(moment, "new", futures=20):
        assert each.job.by[0.5] < by["new"]
    with pytest.raises(InputError, match="no partition nowhere"):
        new_job("-p nowhere", _AT, case)
