"""``decision platform ...``: what users see of making, checking and showing platforms."""

import pytest
from click.testing import CliRunner

from decision.cli.app import app
from decision.files import load_platform
from decision.files.generate.grid5000 import CLUSTERS


def cli(*arguments):
    return CliRunner().invoke(app, ["platform", *map(str, arguments)], env={"COLUMNS": "120"})


@pytest.mark.parametrize("command", ["grid5000", "check", "show"])
def test_every_command_explains_itself_with_an_example(command):
    result = cli(command, "--help")
    assert result.exit_code == 0
    assert f"decision platform {command}" in result.stdout


def test_without_a_name_all_clusters_are_listed():
    shown = cli("grid5000").stdout
    for facts in CLUSTERS.values():
        assert facts.name in shown
        assert f"{facts.theoretical / 1e9:g}" in shown


@pytest.mark.parametrize("name", CLUSTERS)
def test_every_cluster_is_made_loads_and_has_no_findings(tmp_path, name):
    path = tmp_path / "p.xml"
    made = cli("grid5000", name, "--flops", "theoretical", "--energy", "taurus", "-o", path)
    assert (made.exit_code, made.stderr) == (0, "")
    assert len(load_platform(path, energy=True).hosts) == CLUSTERS[name].nodes
    checked = cli("check", path)
    said = checked.stdout.replace("\n", "")
    assert (checked.exit_code, said.endswith(f"{path}: no findings")) == (0, True)
    assert "us late" in said  # they have links


def test_only_taurus_has_power_unless_others_get_it(tmp_path):
    path = tmp_path / "p.xml"
    assert cli("grid5000", "taurus", "-o", path).stderr == ""
    assert load_platform(path, energy=True).has_power
    assert "--energy taurus gives it that of taurus" in cli("grid5000", "gros", "-o", path).stderr
    assert not load_platform(path, energy=True).has_power
    refused = cli("grid5000", "gros", "--energy", "own", "-o", path)
    assert (refused.exit_code, "its power has not been measured" in refused.stderr) == (2, True)


def test_names_and_cores_can_be_chosen(tmp_path):
    path = tmp_path / "p.xml"
    options = ("--granularity", "core", "--hosts", 2, "--energy", "taurus", "--simgrid", "3.24", "--no-network")
    assert cli("grid5000", "orion", *options, "-o", path).exit_code == 0
    platform = load_platform(path, energy=True)
    assert len(platform.hosts) == 24
    assert platform.topology is None
    assert {"server", "watt_per_state", "watt_off"} <= platform.hosts[0].properties.keys()
    assert cli("check", path, "--simgrid", "3.24").exit_code == 0
    newer = cli("check", path, "--simgrid", "4.0")
    assert newer.exit_code == 2
    assert "(and 23 more like it): SimGrid 4.0 no longer reads 'watt_off'" in newer.stdout.replace("\n", "")


@pytest.mark.parametrize(
    "arguments",
    [
        ("grid5000", "gross"),
        ("grid5000", "paradoxe"),
        ("grid5000", "gros", "--simgrid", "new"),
        ("check", "absent.xml"),
        ("show", "absent.xml"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    result = cli(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert len(result.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_show_prints_hosts_pstates_and_links_and_draws(tmp_path):
    pytest.importorskip("matplotlib")
    path, picture = tmp_path / "p.xml", tmp_path / "p.png"
    cli("grid5000", "taurus", "-o", path)
    result = cli("show", path, "--plot", picture, "--width", "3", "--dpi", "100")
    assert result.exit_code == 0
    assert int.from_bytes(picture.read_bytes()[16:20], "big") == 300  # pixels
    for text in ("taurus-[1-16]", "0-15", "141.24", "190.738", "151.52", "taurus-[1-16]_link", "1.25GBps", "2 hops"):
        assert text in result.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_host_whose_power_is_wrong_is_shown_without_it(tmp_path, root):
    text = (root / "platforms/toy.xml").read_text().replace("95.0:95.0:190.738", "95.0:oops", 1)
    (tmp_path / "p.xml").write_text(text)
    result = cli("show", tmp_path / "p.xml")
    assert result.exit_code == 0
    assert "power is left out where it is invalid" in result.stderr
    assert "line 12, <host> 'node-000'" in result.stderr
    assert "node-[001-003]" in result.stdout


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("grid5000 taurus --hosts 10000000 --granularity core", "120,000,000 hosts are more than the 1,000,000"),
        (
            "flat --hosts 4 --simgrid 3.21",
            "the SimGrid version '3.21': give a version from 3.22 on, such as 3.24, 3.28 or 4.0 (--simgrid)",
        ),
        ("flat --hosts 4 --power 100:50", "--power '100:50': expected IDLE:COMPUTING with IDLE <= COMPUTING"),
    ],
)
def test_platforms_that_make_no_sense_are_refused(command: str, message: str, tmp_path) -> None:
    result = cli(*command.split(), "-o", tmp_path / "p.xml")
    assert (result.exit_code, message in result.stderr.replace("\n", " ")) == (2, True)
    assert not list(tmp_path.iterdir())


def test_switch_times_replace_the_measured_ones(tmp_path):
    path = tmp_path / "orion.xml"
    options = ["--granularity", "core", "--energy", "taurus", "--switch-times", "60,180"]
    made = cli("grid5000", "orion", *options, "-o", path)
    assert made.exit_code == 0
    host = load_platform(path, energy=True).hosts[0]
    (sleep,) = host.sleep
    assert 1 / host.pstates[sleep.switch_on].speed == pytest.approx(60)
    assert 1 / host.pstates[sleep.switch_off].speed == pytest.approx(180)
    assert "measured are 6.1 s (off) and 151.52 s" in " ".join(path.read_text().split())


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ("taurus --switch-times 60", "--switch-times '60': write it as WAKE,SLEEP in seconds above 0, like 60,180"),
        ("taurus --switch-times 0,180", "--switch-times '0,180': write it as WAKE,SLEEP in seconds above 0"),
        ("orion --switch-times 60,180", "--switch-times 60,180: hosts of orion do not sleep; add --energy taurus"),
    ],
)
def test_switch_times_that_make_no_sense_are_refused(tmp_path, options, complaint):
    refused = cli("grid5000", *options.split(), "-o", tmp_path / "x.xml")
    assert (refused.exit_code, complaint in " ".join(refused.stderr.split())) == (2, True)
    assert not (tmp_path / "x.xml").exists()
