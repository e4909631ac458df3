"""Options that choose jobs act on Batsim's JSON as on logs; options that would do nothing are refused."""

import csv
import json

import pytest
from click.testing import CliRunner

import decision as d
from decision.cli.app import app

# number, submission, run time, hosts, requested time; the third is larger than the others
JOBS = ((1, 0, 60, 1, 100), (2, 5, 50, 2, 90), (3, 6, 30, 4, 80), (4, 7, 20, 1, 70), (5, 9, 10, 2, 60))


def cli(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "200"})


@pytest.fixture(params=["swf", "json"])
def inputs(request, root, tmp_path):
    """The same jobs as a log and as JSON, whose jobs are not in order of submission."""
    path = tmp_path / f"work.{request.param}"
    if request.param == "swf":
        rows = (f"{n} {at} 0 {run} {size} 0 0 {size} {wall} 0 1 1 1 1 1 1 -1 -1" for n, at, run, size, wall in JOBS)
        path.write_text("; MaxProcs: 4\n" + "\n".join(rows) + "\n")
    else:
        jobs = [
            {"id": str(n), "subtime": at, "res": size, "walltime": wall, "profile": f"d{run}"}
            for n, at, run, size, wall in reversed(JOBS)
        ]
        profiles = {f"d{run}": {"type": "delay", "delay": run} for _, _, run, _, _ in JOBS}
        path.write_text(json.dumps({"nb_res": 4, "jobs": jobs, "profiles": profiles}))
    return "-p", root / "platforms/toy.xml", "-w", path


def ran(inputs, tmp_path, *options):
    """Id, hosts and walltime of the jobs that ran, in order of their ids."""
    result = cli("run", *inputs, "--policy", "fcfs", "-o", tmp_path / "out", *options)
    assert result.exit_code == 0, result.output
    rows = csv.DictReader((tmp_path / "out" / "out_jobs.csv").open())
    return sorted(
        (int(row["job_id"]), int(row["requested_number_of_resources"]), float(row["requested_time"])) for row in rows
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--select", "1:3"), [(2, 2, 90), (3, 4, 80)]),
        (("--select", ":2"), [(1, 1, 100), (2, 2, 90)]),
        (("--nodes", "2", "--select", "2:"), [(4, 1, 70), (5, 2, 60)]),
        (("--walltime", "runtime", "--select", "3:"), [(4, 1, 20), (5, 2, 10)]),
        (("--walltime", "none", "--select", "3:"), [(4, 1, -1), (5, 2, -1)]),
        (("--walltime", "runtime", "--select", "3:", "--engine", "reference"), [(4, 1, 20), (5, 2, 10)]),
    ],
)
def test_jobs_are_chosen_in_json_as_in_logs(inputs, tmp_path, options, expected):
    assert ran(inputs, tmp_path, *options) == expected


def test_a_comparison_and_an_evaluation_choose_alike(inputs, tmp_path):
    compared = cli("compare", *inputs, "--policy", "fcfs", "--select", "1:3", "-o", tmp_path, "-j", 1)
    assert compared.exit_code == 0, compared.output
    setup = json.loads((tmp_path / "comparison.json").read_text())["setup"]
    assert "(2 jobs, sha256 " in setup["workloads"]
    assert setup["jobs"] == "jobs 1:3 of each workload, on 10 copies with shaken submissions"


@pytest.mark.parametrize("command", ["run", "compare", "evaluate"])
def test_a_range_without_jobs_is_refused(inputs, tmp_path, command):
    pytest.importorskip("torch")
    policy = ["fcfs"] if command == "evaluate" else ["--policy", "fcfs", "-o", tmp_path / "out"]
    result = cli(command, *policy, *inputs, "--select", "9:")
    assert result.exit_code == 2
    assert "no usable job (left out: 5 outside the range 9: of jobs)" in result.stderr


def test_a_job_that_computes_ends_within_a_perfect_walltime(root, tmp_path):
    taurus = ("-p", root / "platforms/taurus.xml", "-w", root / "workloads/taurus_week_flops.json")
    result = cli("run", *taurus, "--policy", "easy", "--walltime", "runtime", "-o", tmp_path)
    assert result.exit_code == 0, result.output
    states = {row["final_state"] for row in csv.DictReader((tmp_path / "out_jobs.csv").open())}
    assert states == {"COMPLETED_SUCCESSFULLY"}


def test_perfect_walltimes_need_hosts_of_one_speed(tmp_path):
    platform = tmp_path / "mixed.xml"
    platform.write_text(
        '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">'
        '<platform version="4.1"><zone id="AS0" routing="Full"><host id="master_host" speed="1Gf"/>'
        '<host id="a" speed="1Gf"/><host id="b" speed="2Gf"/></zone></platform>'
    )
    workload = tmp_path / "w.json"
    jobs = [{"id": "1", "subtime": 0, "res": 1, "walltime": 9, "profile": "p"}]
    profiles = {"p": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 0}}
    workload.write_text(json.dumps({"nb_res": 2, "jobs": jobs, "profiles": profiles}))
    result = cli("run", "-p", platform, "-w", workload, "--policy", "fcfs", "--walltime", "runtime", "-o", tmp_path)
    assert result.exit_code == 2
    assert "differ in speed; take the requested walltimes (--walltime)" in result.stderr


@pytest.mark.parametrize(
    ("command", "options", "named"),
    [
        ("run", ("--image", "x"), "--image"),
        ("run", ("--batsim", "x"), "--batsim"),
        ("run", ("--batsim-verbosity", "quiet"), "--batsim-verbosity"),
        ("run", ("--schedule-trace",), "--schedule-trace"),
        ("run", ("--timeout", "9", "--engine", "reference"), "--timeout"),
        ("run", ("--image", "x", "--engine", "batsim"), "--image"),
        ("run", ("--width", "5"), "--width"),
        ("compare", ("--length", "3"), "--length"),
        ("compare", ("--batsim", "x"), "--batsim"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused_by_name(inputs, tmp_path, command, options, named):
    result = cli(command, *inputs, "--policy", "fcfs", "-o", tmp_path / "out", *options)
    assert result.exit_code == 2
    assert f"leave the option out ({named})" in result.stderr


@pytest.fixture
def night(tmp_path):
    """Two jobs of sacct around the hour in which Berlin's clock goes back."""
    path = tmp_path / "sacct.txt"
    rows = [
        f"{n}|2021-10-31T0{at}:30:00|2021-10-31T0{at}:30:00|2021-10-31T0{at}:40:00|600|COMPLETED|1|30"
        for n, at in ((1, 1), (2, 3))
    ]
    path.write_text("\n".join(["JobID|Submit|Start|End|ElapsedRaw|State|NNodes|TimelimitRaw", *rows]) + "\n")
    return path


@pytest.mark.parametrize(("zone", "hours"), [((), 2), (("--time-zone", "Europe/Berlin"), 3)])
def test_local_times_are_of_a_zone_wherever_a_log_is_read(night, root, tmp_path, zone, hours):
    given = ("-p", root / "platforms/toy.xml", "-w", night, "-o", tmp_path / "out", *zone)
    assert cli("run", *given, "--policy", "easy").exit_code == 0
    rows = list(csv.DictReader((tmp_path / "out/out_jobs.csv").open()))
    assert [float(row["submission_time"]) for row in rows] == [0.0, 3600.0 * hours]
    assert cli("compare", *given[:4], "-o", tmp_path / "all", *zone, "--policy", "easy", "--whole").exit_code == 0
    described = cli("workload", "describe", night, *zone, "--json")
    assert described.exit_code == 0, described.output
    result = d.simulate("toy", night, "easy", time_zone=zone[1] if zone else None)
    assert float(result.jobs.submit_time.max()) == 3600.0 * hours


def test_a_zone_is_refused_where_no_time_is_local(inputs, tmp_path):
    done = cli("run", *inputs, "--policy", "fcfs", "-o", tmp_path / "out", "--time-zone", "Europe/Berlin")
    assert done.exit_code == 2
    assert "times are seconds, and not local times; leave out the zone (--time-zone)" in done.stderr
