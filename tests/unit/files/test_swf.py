"""Logs in the Standard Workload Format: which lines become jobs, and which jobs."""

import math
import zoneinfo
from pathlib import Path
from typing import Any

import pytest

from decision.files import load_swf
from decision.model.errors import ConfigError, InputError
from decision.model.reshape import dropped_text
from decision.model.workload import Delay, Job, Workload


def line(number: Any, submit: Any = 0, run: Any = 60, allocated: Any = 2, **fields: Any) -> str:
    """A log's line; fields by name, others unknown."""
    values = [number, submit, -1, run, allocated, -1, -1, *[-1] * 11]
    places = {"requested": 7, "time": 8, "status": 10, "user": 11}
    for name, value in fields.items():
        values[places[name]] = value
    return " ".join(map(str, values))


def load(tmp_path: Path, *lines: str, header: str = "; MaxProcs: 8", **options: Any) -> Workload:
    path = tmp_path / "log.swf"
    path.write_text("\n".join([header, *lines]) + "\n")
    return load_swf(path, **options)


def test_a_line_becomes_a_job_with_its_run_time_as_a_delay(tmp_path: Path) -> None:
    workload = load(tmp_path, line(3, 10, 60, 2, requested=4, time=100, user=17))
    assert workload.jobs == (Job(id="w0!3", submit_time=10.0, size=4, walltime=100.0, profile="delay60", user="17"),)
    assert workload.profiles == {"delay60": Delay(60.0)}
    assert (workload.nb_res, workload.dropped) == (8, {})


def test_unknown_requests_are_what_was_used(tmp_path: Path) -> None:
    (job,) = load(tmp_path, line(1, 0, 60, 2)).jobs
    assert (job.size, job.walltime, job.user) == (2, math.inf, "")


def test_jobs_of_one_run_time_share_a_profile(tmp_path: Path) -> None:
    workload = load(tmp_path, line(1, run=60), line(2, run=60.5), line(3, run="60.0"))
    assert [job.profile for job in workload.jobs] == ["delay60", "delay60.5", "delay60"]
    assert workload.profiles == {"delay60": Delay(60.0), "delay60.5": Delay(60.5)}


@pytest.mark.parametrize(("policy", "walltime"), [("requested", 30.0), ("runtime", 60.0), ("none", math.inf)])
def test_the_walltime_policy_says_what_limits_a_job(tmp_path: Path, policy: Any, walltime: float) -> None:
    workload = load(tmp_path, line(1, run=60, time=30), walltime=policy)
    assert workload.jobs[0].walltime == walltime
    assert workload.profiles == {"delay60": Delay(60.0)}


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (line(9, run=0), "with an unknown or zero run time"),
        (line(9, run=-1), "with an unknown or zero run time"),
        (line(9, allocated=0), "with an unknown or zero size"),
        (line(9, allocated=-1, requested=0), "with an unknown or zero size"),
        (line(9, allocated=9), "larger than 8 hosts"),
        (line(9, submit=-1), "with a negative submission time"),
        (line(9, run="nan"), "with a field that is not a finite number"),
        (line(9, user="inf"), "with a field that is not a finite number"),
        (line(9, status=3), "parts of a checkpointed job (status 2, 3 or 4)"),
        (line(9, allocated=1.5), "with a fractional size or job number"),
        (line(1), "with a job number seen before"),
        ("9 0 -1 60", "not 18 numbers"),
        (line(9, run="sixty"), "not 18 numbers"),
    ],
)
def test_a_line_that_no_simulation_can_use_is_left_out_and_counted(tmp_path: Path, bad: str, reason: str) -> None:
    workload = load(tmp_path, line(1), bad, line(2))
    assert [job.name for job in workload.jobs] == ["1", "2"]
    assert workload.dropped == {reason: 1}
    if not reason.startswith("larger than 8"):  # than the machine, which is known when all lines have been read
        assert workload.dropped_lines == {reason: (3,)}


def test_the_first_lines_of_each_reason_are_named(tmp_path: Path) -> None:
    lines = [line(1), line(2, run=0), "; a remark", "", "no job", *(line(n, run=0) for n in range(3, 9)), "no job"]
    workload = load(tmp_path, *lines)
    reasons = "7 with an unknown or zero run time (lines 3, 7, 8, 9, 10, ...), 2 not 18 numbers (lines 6, 13)"
    assert dropped_text(workload) == reasons


@pytest.mark.parametrize(
    ("missing", "walltimes"), [("none", [90, math.inf]), ("runtime", [90, 60]), ("longest", [90, 90])]
)
def test_what_takes_the_place_of_a_request_is_asked_for(tmp_path: Path, missing: str, walltimes: list[float]) -> None:
    workload = load(tmp_path, line(1, time=90), line(2), missing_walltime=missing)
    assert [job.walltime for job in workload.jobs] == walltimes


@pytest.mark.parametrize(
    "text",
    [
        "1 5 30 60 2 -1 700 2 90 -1 5 ann physics -1 batch -1 -1 -1 3,4 q n:ppn",
        "1;5;30;60;2;-1;700;2;90;-1;5;ann;physics;-1;batch;-1;-1;-1;3,4;q;n:ppn",
        "1 ;5 ;30 ;60 ;2 ; -1 ; 700 ; 2 ; 90 ; -1 ; 5 ; ann ; physics ; -1 ; batch ; -1 ; -1 ; -1 ; 3,4 ; q ; n:ppn",
        "1\t5\t30\t60\t2\t-1\t700\t2\t90\t-1\t5\tann\tphysics\t-1\tbatch\t-1\t-1\t-1\t3,4\tq\tn:ppn",
    ],
    ids=["blanks", "semicolons", "both", "tabs"],
)
def test_a_log_may_have_more_fields_other_separators_and_names(tmp_path: Path, text: str) -> None:
    workload = load(tmp_path, text, line(2, submit=6))
    job, trace = workload.jobs[0], workload.trace
    assert (job.user, job.extra) == ("ann", {"group": "physics", "queue": "batch"})
    assert trace is not None
    assert trace.wait.tolist()[0] == 30
    assert [trace.texts("recorded", name)[0] for name in ("state", "fields")] == ["CANCELLED", "3,4 q n:ppn"]
    assert workload.dropped == {}


def test_without_a_header_the_machine_is_the_peak_of_recorded_use(tmp_path: Path) -> None:
    waited = "2 0 0 60 6 -1 -1 6 -1 -1 1 -1 -1 -1 -1 -1 -1 -1"
    both = load(tmp_path, "1 0 30 60 5 -1 -1 5 -1 -1 1 -1 -1 -1 -1 -1 -1 -1", waited, header="")
    assert both.nb_res == 11
    assert both.notes == ("no header says how many hosts the machine had; 11, the peak of what was in use",)
    unknown = load(tmp_path, line(1, allocated=5), line(2, allocated=6), header="")
    assert unknown.nb_res == 6
    assert unknown.notes[0].startswith("warning: neither a header nor recorded starts say how many hosts")
    (tmp_path / "log.swf.machines").write_text("0\tone\t20\t80\t1\t529426432\n1\ttwo\t48\t12\t1\t94035968\n")
    assert load(tmp_path, line(1), header="").nb_res == 2176


def test_jobs_come_in_order_of_submission(tmp_path: Path) -> None:
    workload = load(tmp_path, line(1, 50), line(2, 10), line(3, 50), line(4, 0))
    assert [job.name for job in workload.jobs] == ["4", "2", "1", "3"]


def test_a_range_counts_usable_jobs_in_order_of_submission(tmp_path: Path) -> None:
    lines = [line(1, 30), line(2, 20, run=0), line(3, 10), line(4, 40)]
    assert [job.name for job in load(tmp_path, *lines, jobs=slice(1, 3)).jobs] == ["1", "4"]


def test_shifting_lets_the_first_job_come_at_zero(tmp_path: Path) -> None:
    lines = [line(1, 1000), line(2, 1500), line(3, 1700)]
    assert [job.submit_time for job in load(tmp_path, *lines, jobs=slice(1, None), shift=True).jobs] == [0.0, 200.0]


@pytest.mark.parametrize(
    ("header", "hosts"),
    [
        ("; MaxNodes: 4\n; MaxProcs: 16", 16),
        (";MaxNodes:  4", 4),
        ("; MaxProcs: -1", 2),
        ("; Note: MaxProcs is unknown", 2),
    ],
)
def test_hosts_are_those_of_the_header_or_of_the_largest_job(tmp_path: Path, header: str, hosts: int) -> None:
    assert load(tmp_path, line(1, allocated=2), header=header).nb_res == hosts


@pytest.mark.parametrize(
    ("header", "start", "zone"),
    [
        ("; UnixStartTime: 749458803\n; TimeZone: -28800", 749_458_803.0, -28_800.0),
        ("; UnixStartTime: 749458803 (approximately)\n; TimeZone: +3600", 749_458_803.0, 3600.0),
        ("; UnixStartTime: 749458803\n; TimeZoneString: Utopia\n; TimeZone: 7200", 749_458_803.0, 7200.0),
        ("; UnixStartTime: 749458803\n; TimeZoneString: ../passwd", 749_458_803.0, 0.0),
        ("; UnixStartTime: 749458803\n; TimeZone: 99999999", 749_458_803.0, 0.0),
        ("; UnixStartTime: unknown", None, 0.0),
        ("; UnixStartTime: -1", None, 0.0),
        ("; UnixStartTime: 9999999999999", None, 0.0),
        ("; StartTime: Fri Oct 01", None, 0.0),
    ],
)
def test_the_header_says_when_the_log_began(tmp_path: Path, header: str, start: float | None, zone: float) -> None:
    workload = load(tmp_path, line(1), header=header)
    assert (workload.unix_start, workload.time_zone) == (start, zone)


@pytest.mark.skipif("Europe/Paris" not in zoneinfo.available_timezones(), reason="needs the database of time zones")
@pytest.mark.parametrize(("start", "zone"), [(749_458_803, 3600.0), (760_000_000, 3600.0), (770_000_000, 7200.0)])
def test_a_named_time_zone_knows_of_summer_time(tmp_path: Path, start: int, zone: float) -> None:
    header = f"; UnixStartTime: {start}\n; TimeZoneString: Europe/Paris\n; TimeZone: 0"
    assert load(tmp_path, line(1), header=header).time_zone == zone


def test_the_machine_is_named_and_its_giver_thanked(tmp_path: Path) -> None:
    header = "; Computer: iPSC/860\n;Installation: NASA\n; Acknowledge: Bill\n; Computer: other"
    assert load(tmp_path, line(1), header=header).description == (
        "Computer: iPSC/860; Installation: NASA; Acknowledge: Bill"
    )


def test_groups_executables_and_queues_are_kept(tmp_path: Path) -> None:
    text = "1 0 -1 60 2 -1 -1 -1 -1 -1 1 5 6 7 0 -1 -1 -1"
    (job,) = load(tmp_path, text).jobs
    assert (job.user, job.extra) == ("5", {"group": "6", "executable": "7", "queue": "0"})


def test_the_number_of_hosts_can_be_given(tmp_path: Path) -> None:
    workload = load(tmp_path, line(1, allocated=8), line(2, allocated=3), nodes=4)
    assert [job.name for job in workload.jobs] == ["2"]
    assert workload.nb_res == 4
    assert workload.dropped == {"larger than 4 hosts": 1}


@pytest.mark.parametrize("options", [{"nodes": 0}, {"walltime": "guess"}, {"jobs": slice(0, 9, 2)}])
def test_options_out_of_range_are_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"^{next(iter(options))}: must be"):
        load(tmp_path, line(1), **options)


def test_an_empty_range_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"no usable job \(left out: 1 outside the range 5:9 of jobs\); choose other jobs"
    ):
        load(tmp_path, line(1), jobs=slice(5, 9))


@pytest.mark.parametrize(
    ("log", "jobs", "hosts", "dropped"),
    [
        ("lublin_256.swf", 10_000, 256, {}),
        ("lublin_256_2.swf", 10_000, 256, {}),
        ("NASA-iPSC-1993-3.1-cln.swf", 18_066, 128, {"with an unknown or zero run time": 173}),
        ("theta_argonne.swf", 23_387, 4392, {}),
    ],
)
def test_known_logs_have_their_known_jobs(
    shared: Path, log: str, jobs: int, hosts: int, dropped: dict[str, int]
) -> None:
    workload = load_swf(shared / "data" / log)
    assert (len(workload.jobs), workload.nb_res, workload.dropped) == (jobs, hosts, dropped)


def test_a_byte_order_mark_costs_no_line(tmp_path: Path) -> None:
    path = tmp_path / "marked.swf"
    path.write_bytes(b"\xef\xbb\xbf" + f"{line(1)}\n{line(2)}\n".encode())
    assert load_swf(path).dropped == {}
    assert len(load_swf(path).jobs) == 2
