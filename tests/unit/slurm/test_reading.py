"""Reading a case: what is understood, what is refused in one line, and what a recommendation changes."""

import difflib
import subprocess
from pathlib import Path

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

from decision.cli.app import app
from decision.experiments.audit import audit
from decision.files.accounting.records import Account
from decision.files.workload import load_workload, read_workload
from decision.model.errors import ConfigError, InputError
from decision.slurm.case import hide_names, load_case
from decision.slurm.conf import read_conf
from decision.slurm.jobs import make_log, read_options
from decision.slurm.keys import count_keys
from decision.slurm.recommend import changed_text, conf_diff
from decision.slurm.records import RecordRow, read_cycles, read_rows
from decision.slurm.sweep import Goal, Sweep, Tried, read_vary
from decision.slurm.text import read_date
from tests.helpers.slurm_cases import BEGIN, CONF, HEADER, line, toy


def test_slurm_conf_is_read_with_includes_comments_and_continued_lines(tmp_path: Path) -> None:
    (tmp_path / "nodes.conf").write_text("NodeName=DEFAULT CPUs=8 Weight=5\nNodeName=n[1-2] Feature=a,b\n")
    path = tmp_path / "slurm.conf"
    path.write_text("# of our site\nSchedulerParameters=bf_interval=60,\\\nbf_continue # fast\nInclude nodes.conf\n")
    conf = read_conf(path)
    assert conf.options == {"bf_interval": "60", "bf_continue": "yes"}
    assert conf.nodes[0].pairs == {"cpus": "8", "weight": "5", "feature": "a,b"}
    assert [Path(name).name for name in conf.files] == ["slurm.conf", "nodes.conf"]


def test_every_key_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "slurm.conf"
    path.write_text(
        "ClusterName=c\nPriorityWeightAge=5\nCompleteWait=30\nSuspendTime=9\nEpilog=/bin/true\nSchedulerParameters=bf_x=1\n"
    )
    keys = count_keys(read_conf(path), False)
    assert (keys.used, keys.no_influence) == (
        ("PriorityWeightAge", "CompleteWait", "SchedulerParameters"),
        ("ClusterName",),
    )
    assert set(keys.may_matter) == {"SuspendTime", "Epilog", "bf_x"}


def test_what_is_not_simulated_is_named_with_the_jobs_that_it_touches(tmp_path: Path) -> None:
    conf = CONF.replace("Default=YES", "Default=YES OverSubscribe=FORCE:2") + "PreemptMode=SUSPEND,GANG\n"
    conf += (
        "TopologyPlugin=topology/tree\nPriorityFlags=MAX_TRES,NO_NORMAL_ALL\nPartitionName=q Nodes=n1 PreemptMode=OFF\n"
    )
    conf = conf.replace("CPUs=1", "CPUs=1 CoreSpecCount=1")
    qos = "Name|Priority|GrpTRESMins|PreemptMode|Flags\nnormal|0|cpu=1000|cluster|DenyOnLimit\n"
    qos += "half|0||suspend|DenyOnLimit,NoDecay\n"
    assoc = "Account|User|Share|GrpWall|Par Name\na||1|60|root\na|u|1||\n"
    jobs = [
        line(1, 0, 3, 60, 600, options="--contiguous -d expand:7"),
        line(2, 5, 1, 60, 60, Partition="q", QOS="half", options="--contiguous"),
    ]
    assert set(toy(tmp_path, jobs, conf, qos=qos, assoc=assoc).keys.may_matter) == {
        "TopologyPlugin=topology/tree (1 job)",
        "PriorityFlags=MAX_TRES",
        "OverSubscribe=FORCE:2 of partition p (1 job)",
        "PreemptMode=SUSPEND,GANG of partition p (1 job)",
        "CoreSpecCount of node n[1-4]",
        "GrpTRESMins of QOS normal (1 job)",
        "PreemptMode=SUSPEND of QOS half (1 job)",
        "Flags=NoDecay of QOS half (1 job)",
        "GrpWall of associations (2 jobs)",
        "--contiguous (2 jobs)",
        "--dependency=expand (1 job)",
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("NodeName=n[1- CPUs=1\n", "line 1"),
        ("ClusterName=c\nthis is not a key\n", "line 2"),
        ("Include nowhere.conf\n", "missing"),
        ("", "empty"),
    ],
)
def test_what_is_no_slurm_conf_is_refused_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "slurm.conf"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        read_conf(path)


def test_columns_may_stand_in_any_order_and_missing_ones_are_named(tmp_path: Path) -> None:
    path = tmp_path / "sacct.txt"
    names, values = HEADER.split("|"), line(1, 0, 2, 30, 60).split("|")
    path.write_text("|".join(reversed(names)) + "\n" + "|".join(reversed(values)) + "\n")
    assert make_log(read_rows(path)).jobs[0].nodes == 2
    path.write_text("JobIDRaw|Submit\n1|2026-03-02T08:00:00\n")
    with pytest.raises(InputError, match=r"columns Start, End, State, .*make it with: sacct -a"):
        read_rows(path)


def test_a_case_and_a_workload_count_the_same_records(tmp_path: Path) -> None:
    """One reader: names with a delimiter are names, and what is left out is said."""
    rows = [
        line(1, 0, 2, 30, 60) + "|a|b",
        line(2, 5, 1, 30, 60) + "|plain",
        line(3, 9, 1, 30, 0, Start="Unknown", NodeList="None assigned", State="CANCELLED by 7") + "|",
        line(4, 9, 1, 30, 0) + "|x",
        line(5, 9, 1, 30, 60, JobIDRaw="5.batch", JobID="5.batch") + "|x",
        "torn|line",
    ]
    path = tmp_path / "sacct.txt"
    path.write_text("\n".join([f"{HEADER}|JobName", *rows]) + "\n")
    account = Account()
    log = make_log(read_rows(path, account), None, account)
    assert [job.id for job in log.jobs] == ["1", "2", "3", "4"]
    assert "1 records whose fields do not fit were skipped" in log.notes
    assert "1 steps of jobs were skipped" in log.notes
    told = "2 jobs count here, and decision workload leaves them out: 1 that never started, 1 with an unknown or zero"
    assert any(note.startswith(told) for note in log.notes)
    found = audit(read_workload([path]))
    assert (found.records, found.jobs) == (account.records, 2) == (6, 2)
    left = {reason: entry.lines for reason, entry in found.left_out.items()}
    assert left == {"malformed": [7], "step": [6], "never_started": [4], "no_time": [5]}


def test_features_with_or_and_a_command_line_with_a_pipe_are_texts(tmp_path: Path) -> None:
    columns = HEADER.replace("Flags|", "Flags|Constraints|Reservation|Suspended|")
    row = line(1, 0, 1, 30, 60, options="-C a|b --wrap 'x | y'").replace("SchedMain|", "SchedMain|a|b||00:00:00|")
    path = tmp_path / "sacct.txt"
    path.write_text(f"{columns}\n{row}\n")
    ((record,), account) = read_rows(path), Account()
    assert record.text("Constraints") == "a|b" and record.text("SubmitLine").endswith("'x | y' job.sh")
    assert (record.text("Reservation"), account.left_out) == ("", {})


@pytest.mark.parametrize("option", ["--time-zone", "--timezone"])
def test_dates_are_of_the_zone_that_is_named_under_its_old_name_too(tmp_path: Path, option: str) -> None:
    (tmp_path / "slurm.conf").write_text(CONF)
    (tmp_path / "sacct.txt").write_text(f"{HEADER}\n{line(1, 0, 1, 30, 60)}\n")
    words = ["slurm", "read", "--conf", str(tmp_path / "slurm.conf"), "--jobs", str(tmp_path / "sacct.txt")]
    done = CliRunner().invoke(app, [*words, "-o", str(tmp_path / "case"), option, "Europe/Berlin"])
    assert done.exit_code == 0, done.stderr
    assert load_case(tmp_path / "case").jobs[0].submit == BEGIN - 3600
    workload = load_workload(tmp_path / "sacct.txt", time_zone="Europe/Berlin")
    assert workload.unix_start == BEGIN - 3600
    done = CliRunner().invoke(app, [*words, "-o", str(tmp_path / "case"), option, "Europe/Nowhere"])
    assert done.exit_code == 2 and "time zone 'Europe/Nowhere': unknown" in done.stderr


def test_json_of_newer_slurm_is_read(tmp_path: Path) -> None:
    job = {
        "job_id": 7,
        "user": "u",
        "partition": "p",
        "state": {"current": ["COMPLETED"], "reason": "None"},
        "time": {
            "submission": 1_772_438_400,
            "start": 1_772_438_460,
            "end": 1_772_438_520,
            "elapsed": 60,
            "limit": {"set": True, "infinite": False, "number": 30},
        },
        "required": {"CPUs": 2},
        "allocation_nodes": 1,
        "nodes": "n1",
        "tres": {"requested": [{"type": "cpu", "name": "", "count": 2}, {"type": "node", "name": "", "count": 1}]},
    }
    path = tmp_path / "sacct.json"
    path.write_bytes(msgspec.json.encode({"jobs": [job]}))
    (found,) = make_log(read_rows(path)).jobs
    assert (found.id, found.wait, found.limit, found.cpus) == ("7", 60, 1800, 2)


def test_requeued_jobs_are_one_job_and_steps_are_none(tmp_path: Path) -> None:
    again = line(1, 900, 1, 30, 60)
    rows = [line(1, 0, 1, 30, 300, State="PREEMPTED"), again, line(2, 0, 1, 30, 60, JobIDRaw="2.batch")]
    case = toy(tmp_path, rows)
    (job,) = case.jobs
    assert (job.requeues, job.submit - job.submitted) == (1, 900)
    assert "1 steps of jobs were skipped" in case.notes


def test_a_clock_that_was_changed_is_noticed(tmp_path: Path) -> None:
    row = line(1, 0, 1, 90, 60, End="2026-03-02T09:01:00")
    assert any("time zone" in note for note in toy(tmp_path, [row]).notes)


def test_a_date_that_is_none_is_refused_with_its_line() -> None:
    row = RecordRow({"submit": "yesterday"}, "sacct.txt, line 7")
    with pytest.raises(InputError, match="line 7: Submit is 'yesterday'"):
        row.date("Submit", None)


def test_options_of_sbatch_are_read() -> None:
    options = read_options("sbatch -N2 -n 8 --mem=4G -C 'a&b' --exclusive -d afterok:3 job.sh -x other")
    assert options == {
        **{"nodes": "2", "ntasks": "8", "mem": "4G", "constraint": "a&b", "exclusive": "yes"},
        "dependency": "afterok:3",
    }


def test_cycles_are_read_from_slurmctlds_log_and_from_plain_times(tmp_path: Path) -> None:
    log = tmp_path / "slurmctld.log"
    log.write_text(
        "[2026-03-02T08:00:30.123] sched/backfill: _attempt_backfill: beginning\n[2026-03-02T08:00:30.200] other\n"
    )
    plain = tmp_path / "cycles.txt"
    plain.write_text("2026-03-02T08:00:30\n")
    assert read_cycles(log) == read_cycles(plain) == [read_date("2026-03-02T08:00:30")]
    plain.write_text("nonsense\n")
    with pytest.raises(InputError, match="line 1"):
        read_cycles(plain)


def test_names_can_be_hidden(tmp_path: Path) -> None:
    case = hide_names(toy(tmp_path, [line(1, 0, 1, 30, 60), line(2, 5, 1, 30, 60, User="v")]))
    assert [(job.user, job.account) for job in case.jobs] == [("user1", "account1"), ("user2", "account1")]


def test_settings_are_combined_or_change_together() -> None:
    assert len(read_vary("bf_interval=30,60;PriorityWeightAge=0,1,2")) == 6
    assert read_vary("bf_interval=30,60&bf_window=10,20")[1] == {"bf_interval": "60", "bf_window": "20"}
    for wrong in ("bf_intervall=1", "bf_interval", "bf_interval=1,2&bf_window=1"):
        with pytest.raises(ConfigError):
            read_vary(wrong)


def test_the_diff_changes_only_its_lines_and_patch_applies_it(tmp_path: Path) -> None:
    text = "# ours\nClusterName=c\nSchedulerParameters=bf_interval=30,bf_continue # keep\n" + CONF
    path = tmp_path / "slurm.conf"
    path.write_text(text)
    changes = {"bf_interval": "60", "PriorityWeightAge": "5", "SelectType": "select/cons_tres"}
    new = changed_text(text, read_conf(path), changes, "why")
    assert "SchedulerParameters=bf_interval=60,bf_continue # keep\n" in new
    assert "# why; needs a restart of slurmctld\nSelectType=select/cons_tres\n" in new
    assert new.endswith("# why\nPriorityWeightAge=5\n")
    diff = difflib.unified_diff(text.splitlines(True), new.splitlines(True), "slurm.conf", "slurm.conf")
    subprocess.run(["patch", path], input="".join(diff).encode(), check=True, capture_output=True)
    assert path.read_text() == new


def test_the_diff_of_a_file_whose_last_line_does_not_end_can_be_applied(tmp_path: Path) -> None:
    case = toy(tmp_path, [line(1, 0, 1, 30, 60)], CONF + "SchedulerParameters=bf_interval=30")
    folder = Path(case.folder)
    better = Tried({"bf_interval": "60", "bf_window": "60"}, -5.0, (-6.0, -4.0), -5.0, (), 0.1)
    goal = Goal("mean-wait", "mean-wait", np.arange(1), 1.0)
    diff = conf_diff(folder, case.conf, Sweep(goal, 10.0, (better,), {}, 2), "decision slurm sweep")
    subprocess.run(["patch", folder / "slurm.conf"], input=diff.encode(), check=True, capture_output=True)
    assert read_conf(folder / "slurm.conf").options == {"bf_interval": "60", "bf_window": "60"}
    worse = better._replace(interval=(-6.0, 4.0))
    assert conf_diff(folder, case.conf, Sweep(goal, 10.0, (worse,), {}, 2), "") == ""


@pytest.mark.parametrize(("old", "new"), [('"partition":"p"', '"partition":"r"'), ('"nodes":["n1"', '"nodes":["m1"')])
def test_a_case_that_was_changed_by_hand_is_refused(tmp_path: Path, old: str, new: str) -> None:
    toy(tmp_path, [line(1, 0, 1, 60, 600)])
    path = tmp_path / "case" / "case.json"
    text = path.read_text().replace(" ", "").replace("\n", "")
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(InputError, match="no partition or node"):
        load_case(path.parent)
