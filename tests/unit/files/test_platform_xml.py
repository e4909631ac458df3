"""SimGrid platforms as Batsim reads them: hosts and ids, roles, speeds, power and sleep."""

from pathlib import Path
from typing import Any

import pytest

from decision.files import load_platform, write_platform
from decision.files.simgrid.values import format_speed, parse_speed
from decision.model.errors import ConfigError, InputError
from decision.model.platform import Platform, PowerState, SleepState

MASTER = '<host id="master_host" speed="1Gf"/>'
HEAD = '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'


def load(tmp_path: Path, body: str, boss: str = MASTER, head: str = HEAD, **options: Any) -> Platform:
    path = tmp_path / "platform.xml"
    path.write_text(
        f'{head}<platform version="4.1"><zone id="world" routing="Full">{body}'
        f'<zone id="head" routing="Full">{boss}</zone></zone></platform>'
    )
    return load_platform(path, **options)


def host(name: str, *properties: tuple[str, str], speed: str = "1Gf", **attributes: str) -> str:
    written = "".join(f'<prop id="{key}" value="{value}"/>' for key, value in properties)
    extra = "".join(f' {key}="{value}"' for key, value in attributes.items())
    return f'<host id="{name}" speed="{speed}"{extra}>{written}</host>'


def names(platform: Platform) -> list[str]:
    return [found.name for found in platform.hosts]


def test_ids_follow_names_byte_by_byte(tmp_path: Path) -> None:
    platform = load(tmp_path, "".join(map(host, ["n10", "n9", "n1", "M", "é", "z"])))
    assert names(platform) == ["M", "n1", "n10", "n9", "z", "é"]
    assert [found.id for found in platform.hosts] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("text", "speed"),
    [
        ("100", 100.0),
        ("100f", 100.0),
        ("1kf", 1e3),
        ("100.0Mf", 1e8),
        ("0.5Gf", 5e8),
        ("2Tf", 2e12),
        ("1Pf", 1e15),
        ("1Ef", 1e18),
        ("1e-9Mf", 1e-3),
        ("1E3f", 1e3),
        (".5kf", 500.0),
        ("3gigaflops", 3e9),
        ("3flops", 3.0),
        (" 0f ", 0.0),
    ],
)
def test_speeds_have_the_units_of_simgrid(text: str, speed: float) -> None:
    assert parse_speed(text) == pytest.approx(speed, rel=1e-15)


@pytest.mark.parametrize("speed", [1.0, 1e9, 141.24e9, 2.5e12, 1 / 151.52, 1e-3, 999.0, 123456789.0, 0.0])
def test_a_written_speed_is_read_again(speed: float) -> None:
    assert parse_speed(format_speed(speed)) == speed


@pytest.mark.parametrize("kind", ["cluster", "cabinet"])
def test_a_cluster_has_a_host_for_each_number_of_its_radical(tmp_path: Path, kind: str) -> None:
    cluster = f'<{kind} id="c" prefix="n-" suffix=".org" radical="0-2,7" speed="2Gf" bw="1Bps" lat="0s"/>'
    platform = load(tmp_path, cluster)
    assert names(platform) == ["n-0.org", "n-1.org", "n-2.org", "n-7.org"]
    assert {found.pstates for found in platform.hosts} == {(PowerState(2e9),)}


def test_properties_of_a_flat_cluster_are_those_of_its_hosts_and_of_its_zone(tmp_path: Path) -> None:
    start = '<cluster id="c" prefix="n" suffix="" radical="0" speed="1f" bw="1Bps" lat="0s"'
    text = start + '{}><prop id="k" value="v"/></cluster>'
    (flat,) = load(tmp_path, text.format("")).hosts
    assert (flat.properties, flat.zone_properties) == ({"role": "", "k": "v"}, {"k": "v"})
    (tree,) = load(tmp_path, text.format(' topology="FAT_TREE" topo_parameters="1;1;1;1"')).hosts
    assert (tree.properties, tree.zone_properties) == ({"role": "", "k": "v"}, {})


def test_zones_pass_their_properties_on_and_inner_ones_win(tmp_path: Path) -> None:
    body = (
        '<prop id="site" value="lyon"/><prop id="room" value="1"/><prop id="room" value="ignored"/>'
        '<AS id="in" routing="Full"><prop id="room" value="2"/>' + host("a") + "</AS>" + host("b")
    )
    inner, outer = load(tmp_path, body).hosts
    assert inner.zone_properties == {"site": "lyon", "room": "2"}
    assert outer.zone_properties == {"site": "lyon", "room": "1"}


def test_what_concerns_the_network_is_ignored(tmp_path: Path) -> None:
    body = (
        '<link id="l" bandwidth="1Bps" latency="1us"/><router id="r"/><backbone id="b" bandwidth="1Bps" latency="0s"/>'
        + host("a")
        + '<route src="a" dst="r"><link_ctn id="l"/></route><zoneRoute src="x" dst="y" gw_src="x" gw_dst="y"/>'
        '<trace id="t" periodicity="1.0">0.0 1.0</trace><trace_connect trace="t" element="a"/>'
    )
    assert names(load(tmp_path, body)) == ["a"]


def test_a_peer_is_a_host(tmp_path: Path) -> None:
    platform = load(tmp_path, '<peer id="p" speed="3Gf" bw_in="1Bps" bw_out="1Bps"/>')
    assert (names(platform), platform.hosts[0].pstates) == (["p"], (PowerState(3e9),))


def test_blank_lines_before_the_declaration_are_allowed(tmp_path: Path) -> None:
    assert names(load(tmp_path, host("a"), head="\n \n" + HEAD)) == ["a"]


# ------------------------------------------------------------------------------------------------- roles


def test_storage_hosts_come_after_compute_hosts(tmp_path: Path) -> None:
    platform = load(
        tmp_path, host("a", ("role", "storage"), speed="0f") + host("b") + host("c", ("role", "compute_node"))
    )
    assert [(found.id, found.name) for found in platform.hosts] == [(0, "b"), (1, "c")]
    assert [(found.id, found.name, found.properties) for found in platform.storage] == [(2, "a", {"role": "storage"})]


def test_roles_can_be_given_beside_the_file(tmp_path: Path) -> None:
    platform = load(tmp_path, host("a") + host("b"), roles={"a": "storage"})
    assert (names(platform), platform.storage[0].properties) == (["b"], {"role": "storage"})


def test_another_master_can_be_named(tmp_path: Path) -> None:
    platform = load(tmp_path, host("a") + host("b"), master="b")
    assert (names(platform), platform.master) == (["a", "master_host"], "b")


def test_the_file_can_give_the_role_of_master(tmp_path: Path) -> None:
    assert load(tmp_path, host("a"), boss=host("boss", ("role", "master"))).master == "boss"


def test_a_second_role_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'a' has the role 'storage,compute_node'"):
        load(tmp_path, host("a", ("role", "storage")), roles={"a": "compute_node"})


def test_a_platform_can_be_limited_to_its_first_hosts(tmp_path: Path) -> None:
    body = host("c") + host("a") + host("b") + host("s", ("role", "storage"), speed="0f")
    platform = load(tmp_path, body, mmax=2)
    assert (names(platform), [found.id for found in platform.storage]) == (["a", "b"], [2])


@pytest.mark.parametrize("mmax", [0, 2])
def test_more_hosts_than_there_are_are_refused(tmp_path: Path, mmax: int) -> None:
    with pytest.raises(InputError, match=rf"1 compute hosts, {mmax} wanted; choose 1 to 1"):
        load(tmp_path, host("a"), mmax=mmax)


# ------------------------------------------------------------------------------------------------- power

SLEEPER = {"speed": "2Gf, 1Gf, 1e-9Mf, 0.5f, 0.25f"}
WATTS = ("wattage_per_state", "95.0:96.0:190.5, 90:150, 10:10:10, 100:100, 125:125")


def test_power_and_sleep_states_are_read(tmp_path: Path) -> None:
    (found,) = load(tmp_path, host("a", WATTS, ("sleep_pstates", " 2 : 3 :4"), **SLEEPER), energy=True).hosts
    assert found.pstates[:2] == (PowerState(2e9, 95.0, 96.0, 190.5), PowerState(1e9, 90.0, 90.0, 150.0))
    assert found.sleep == (SleepState(pstate=2, switch_off=3, switch_on=4),)
    assert [found.is_computing_pstate(p) for p in range(5)] == [True, True, False, False, False]
    assert found.has_power


def test_two_sleep_states_may_share_their_switches(tmp_path: Path) -> None:
    text = host("a", ("sleep_pstates", "1:3:4,2:3:4"), **SLEEPER)
    assert load(tmp_path, text, energy=True).hosts[0].sleep == (SleepState(1, 3, 4), SleepState(2, 3, 4))


def test_old_names_of_power_are_read_and_new_ones_win(tmp_path: Path) -> None:
    old = ("watt_per_state", "1:2:3")
    assert load(tmp_path, host("a", old), energy=True).hosts[0].pstates == (PowerState(1e9, 1.0, 3.0, 3.0),)
    both = host("a", old, ("wattage_per_state", "4:5:6"))
    assert load(tmp_path, both, energy=True).hosts[0].pstates == (PowerState(1e9, 4.0, 5.0, 6.0),)


def test_a_job_loads_one_core_of_a_host(tmp_path: Path) -> None:
    """SimGrid divides the load by the cores: one job on 4 cores draws a quarter of the dynamic power."""
    text = host("a", ("wattage_per_state", "80:100:200"), core="4")
    assert load(tmp_path, text, energy=True).hosts[0].pstates == (PowerState(1e9, 80.0, 100.0, 125.0),)


def test_without_energy_mistakes_in_power_are_ignored(tmp_path: Path) -> None:
    text = host("a", ("wattage_per_state", "1:2, 3:4"), ("sleep_pstates", "nonsense"))
    (found,) = load(tmp_path, text).hosts
    assert (found.has_power, found.sleep, found.pstates) == (False, (), (PowerState(1e9),))
    assert found.properties["sleep_pstates"] == "nonsense"


def test_a_host_without_power_draws_none(tmp_path: Path) -> None:
    platform = load(tmp_path, host("a"), energy=True)
    assert (platform.has_power, platform.hosts[0].pstates) == (False, (PowerState(1e9, 0.0, 0.0, 0.0),))


def test_hosts_start_in_the_pstate_of_the_file(tmp_path: Path) -> None:
    assert load(tmp_path, host("a", speed="1Gf, 2Gf", pstate="1")).hosts[0].initial_pstate == 1


def test_without_energy_only_the_first_pstate_needs_a_speed(tmp_path: Path) -> None:
    assert names(load(tmp_path, host("a", speed="1Gf, 0f"))) == ["a"]
    with pytest.raises(InputError, match="pstate 1 has a speed of 0"):
        load(tmp_path, host("a", speed="1Gf, 0f"), energy=True)


# ----------------------------------------------------------------------------------------------- writing


def test_a_written_platform_keeps_properties_and_a_comment(tmp_path: Path) -> None:
    first = load(tmp_path, host("a", ("rack", "R&amp;D"), WATTS, ("sleep_pstates", "2:3:4"), **SLEEPER), energy=True)
    write_platform(tmp_path / "again.xml", first, "made by hand -- for a test")
    again = load_platform(tmp_path / "again.xml", energy=True)
    assert again.hosts[0].pstates == first.hosts[0].pstates
    assert again.hosts[0].sleep == first.hosts[0].sleep
    assert again.hosts[0].properties["rack"] == "R&D"
    assert "made by hand" in (tmp_path / "again.xml").read_text()


def test_power_has_the_names_of_the_simgrid_that_will_read_it(tmp_path: Path) -> None:
    host_ = host("a", WATTS, ("sleep_pstates", "2:3:4"), ("wattage_off", "10"), **SLEEPER)
    platform = load(tmp_path, host_, energy=True)
    for version, names_ in (
        ("3.24", {"watt_per_state", "watt_off"}),
        ("3.27", {"watt_per_state", "watt_off"}),
        ("3.28", {"wattage_per_state", "wattage_off"}),
        ("4.0", {"wattage_per_state", "wattage_off"}),
    ):
        write_platform(tmp_path / "v.xml", platform, simgrid=version)
        properties = load_platform(tmp_path / "v.xml", energy=True).hosts[0].properties
        assert {key for key in properties if key.startswith("watt")} == names_, version


def test_the_old_name_of_power_gives_what_one_core_draws(tmp_path: Path) -> None:
    """Idle, one core, all cores until SimGrid 3.23; 3.24 to 3.27 made epsilon of them as tested here."""
    for cores, old, full_at_one in (("1", "80:100:200", 200.0), ("4", "80:110:200", 110.0), ("2", "80:200", 140.0)):
        (found,) = load(tmp_path, host("a", ("watt_per_state", old), core=cores), energy=True).hosts
        assert found.pstates[0].idle == 80.0
        assert found.pstates[0].full == pytest.approx(full_at_one)


def test_an_old_file_draws_what_the_new_one_does_when_hosts_compute(tmp_path: Path) -> None:
    platform = load(tmp_path, host("a", WATTS, **SLEEPER), energy=True)
    write_platform(tmp_path / "old.xml", platform, simgrid="3.24")
    (old,) = load_platform(tmp_path / "old.xml", energy=True).hosts
    assert [(p.idle, p.full) for p in old.pstates] == [(p.idle, p.full) for p in platform.hosts[0].pstates]


@pytest.mark.parametrize("version", ["3.x", "", "-4", "3.21", "2"])
def test_a_version_that_is_none_is_refused(tmp_path: Path, version: str) -> None:
    with pytest.raises(ConfigError, match=r"from 3\.22 on, such as 3\.24, 3\.28 or 4\.0"):
        write_platform(tmp_path / "p.xml", load(tmp_path, host("a")), simgrid=version)
