"""Supplies of power: what sun, wind, a battery and the grid do, and what a file says."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from decision.cli.app import app
from decision.files import load_events
from decision.files.generate.events import SupplyModel, green_power, stored, supplied_hosts, supply_lines

DAY = SupplyModel(hosts=100, steps=1440)


def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def supply(*words: str):
    return CliRunner().invoke(app, ["workload", "supply", *words])


def test_without_wind_the_sun_powers_hosts_by_day_only() -> None:
    power = green_power(rng(), SupplyModel(hosts=100, steps=1440, wind=0.0))
    assert (power[:360] == 0).all()
    assert (power[1081:] == 0).all()
    assert 20 < power[660:780].mean() <= 80


def test_wind_blows_around_its_mean() -> None:
    power = green_power(rng(), SupplyModel(hosts=100, steps=100_000, sun=0.0, wind=0.3))
    assert power.mean() == pytest.approx(30, rel=0.05)
    assert power.min() >= 0


def test_a_battery_gives_back_what_it_took() -> None:
    power = np.array([0.0, 8.0, 8.0, 0.0, 0.0, 8.0])
    model = SupplyModel(battery=6 / 60)  # six host-steps of a minute
    given = stored(power, model)  # the means so far are 0, 4, 16/3, 4, 16/5, 4: it holds 0, 4, 6, 2, 0, 4
    assert given.tolist() == [0, 4, 6, 4, 2, 4]


def test_a_battery_loses_what_its_efficiency_says_and_keeps_its_rate() -> None:
    power = np.array([0.0, 8.0, 8.0, 0.0, 0.0, 0.0])
    lossy = stored(power, SupplyModel(battery=1, battery_efficiency=0.5))  # takes 4 and 8/3, holds 2 and 10/3
    assert lossy == pytest.approx([0, 4, 16 / 3, 10 / 3, 0, 0])
    slow = stored(power, SupplyModel(battery=1, battery_rate=1))
    assert slow.tolist() == [0, 7, 7, 1, 1, 0]


def test_a_battery_does_not_know_what_comes() -> None:
    power = green_power(rng(), SupplyModel(hosts=100, steps=2000))
    model = SupplyModel(hosts=100, battery=50)
    other = np.append(power[:900], 0 * power[900:])
    assert (stored(power, model)[:900] == stored(other, model)[:900]).all()


def test_the_grid_powers_a_few_and_the_platform_is_the_most() -> None:
    hosts = supplied_hosts(np.array([0.0, 2.99, 12.0]), SupplyModel(hosts=10, floor=2))
    assert hosts.tolist() == [2, 2, 10]


def test_forecasts_without_error_are_what_comes() -> None:
    model = SupplyModel(hosts=9, steps=4, floor=0, horizon=3, error=0.0)
    lines = supply_lines(rng(), np.array([1.0, 5.0, 3.0, 7.0]), model).splitlines()
    assert [json.loads(line)["forecast"] for line in lines] == [[5, 3, 7], [3, 7, 7], [7, 7, 7], [7, 7, 7]]


def test_without_forecasts_there_are_events_at_changes_only() -> None:
    model = SupplyModel(hosts=9, steps=5, horizon=0)
    lines = supply_lines(rng(), np.array([1.0, 1.0, 3.0, 3.0, 3.0]), model).splitlines()
    assert [(json.loads(line)["timestamp"], json.loads(line)["hosts"]) for line in lines] == [
        (0, 1),
        (120, 3),
        (240, 3),
    ]


def test_the_command_makes_what_run_reads(tmp_path: Path) -> None:
    path, again = tmp_path / "s.txt", tmp_path / "again.txt"
    assert supply("--hosts", "10", "--steps", "30", "-o", str(path)).exit_code == 0
    assert supply("--hosts", "10", "--steps", "30", "-o", str(again)).exit_code == 0
    assert path.read_bytes() == again.read_bytes()
    events = load_events(path, supply=True)
    assert (len(events), len(events[0].hosts)) == (30, 21)
    table = tmp_path / "power.csv"
    table.write_text("time,hosts\n0,2.5\n90,7\n")
    options = ("--hosts", "5", "--steps", "3", "--forecast", "0", "--csv", str(table), "-o", str(path))
    assert supply(*options).exit_code == 0
    assert [event.hosts for event in load_events(path, supply=True)] == [(2,), (4,), (5,)]  # 2.5, 4.75 and 7 on average


FLAT = '<zone id="z" routing="Full"><host id="master_host" speed="1Gf"/>{}</zone>'
HOST = '<host id="h{}" speed="1Gf"><prop id="wattage_per_state" value="95:95:190"/></host>'


@pytest.mark.parametrize(
    ("words", "hosts"),
    [
        (("--unit", "W", "--host-watts", "100"), [0, 4, 8]),
        (("--unit", "kW", "--host-watts", "1e5"), [0, 4, 8]),
        (("--unit", "W/m2", "--area", "2", "--efficiency", "0.25", "--host-watts", "50"), [0, 4, 8]),
        (("--unit", "W", "--platform", "P"), [0, 0, 4]),  # 4 hosts draw 380 W, and each that computes 95 W more
    ],
)
def test_power_in_watts_and_in_light_becomes_hosts(tmp_path: Path, words, hosts) -> None:
    table, platform, path = tmp_path / "pv.csv", tmp_path / "p.xml", tmp_path / "s.txt"
    rows = ("2024-06-01T06:00:00+02:00;0", "2024-06-01T06:30:00+02:00;400", "2024-06-01T07:00:00+02:00;800")
    table.write_text("\n".join(("PeriodEnd;ghi", *rows)) + "\n")
    platform.write_text(f'<platform version="4.1">{FLAT.format("".join(map(HOST.format, range(4))))}</platform>')
    named = tuple(str(platform) if word == "P" else word for word in words)
    options = ("--hosts", "9", "--steps", "3", "--step", "1800", "--floor", "0", "--forecast", "0", "-o", str(path))
    made = supply(*options, "--csv", str(table), "--time-column", "PeriodEnd", *named)
    assert made.exit_code == 0, made.stderr
    events = load_events(path, supply=True)
    at = {event.timestamp: event.hosts[0] for event in events}
    assert [at.get(time, at[0]) for time in (0, 1800, 3600)] == hosts


@pytest.mark.parametrize(
    ("words", "text", "message"),
    [
        (("--hosts", "5"), "", "give --hosts and --steps, or with --for the workload that says both"),
        (("--hosts", "5", "--steps", "9", "--floor", "6"), "", "--floor 6: there are only 5 hosts"),
        (("--hosts", "5", "--steps", "9", "--csv", "T"), "t,hosts\n0,1\n", "has the columns t, hosts; say which one"),
        (("--hosts", "5", "--steps", "9", "--csv", "T"), "time,hosts\n0,1\n60,1\n", "no value from 120 to 480 s"),
        (("--hosts", "5", "--steps", "9", "--csv", "T", "--unit", "W"), "time,W\n0,1\n", "watts need --host-watts"),
        (("--hosts", "5", "--steps", "9", "--csv", "T", "--area", "2"), "time,W\n0,1\n", "go with --unit W/m2"),
        (("--hosts", "5", "--steps", "9", "--csv", "T"), "time,hosts\n9,1\n0,1\n", "row 2: times must ascend"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_no_file(tmp_path: Path, words, text: str, message: str) -> None:
    (tmp_path / "T").write_text(text)
    result = supply(*(str(tmp_path / "T") if word == "T" else word for word in words), "-o", str(tmp_path / "s"))
    assert (result.exit_code, message in result.stderr) == (2, True), result.stderr
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ('"hosts":-1', "line 1, field 'hosts': must be a whole number, 0 or more; found -1"),
        ('"hosts":2.5', "field 'hosts': must be a whole number, 0 or more; found 2.5"),
        ('"host":2', "field 'hosts': must be a whole number, 0 or more; found None"),
        ('"hosts":2,"forecast":[1,-2]', "field 'forecast': must be a list of whole numbers"),
    ],
)
def test_events_that_make_no_sense_are_refused(tmp_path: Path, event: str, message: str) -> None:
    path = tmp_path / "e.txt"
    path.write_text(f'{{"type":"power_supply","timestamp":0,{event}}}\n')
    with pytest.raises(Exception, match=message.replace(".", r"\.").replace("[", r"\[")):
        load_events(path, supply=True)


def test_a_plain_batsim_refuses_generic_events(tmp_path: Path) -> None:
    path = tmp_path / "e.txt"
    path.write_text('{"type":"power_supply","timestamp":0,"hosts":1}\n')
    with pytest.raises(Exception, match=r"'power_supply' is unknown; .* or forward unknown events"):
        load_events(path)
