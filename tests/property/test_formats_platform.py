"""Any platform survives writing and reading; no text makes the reader of XML fail but with its own error."""

from pathlib import Path
from xml.sax.saxutils import quoteattr

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from decision.files import load_platform, write_platform
from decision.files.platform_check import check_platform
from decision.model.errors import InputError
from decision.model.platform import Host, Platform, PowerState, SleepState

same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)

texts = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), max_size=8
)
host_names = texts.filter(lambda name: name and name != "master_host")
watts = st.floats(0, 1e6)
power_states = st.builds(PowerState, st.floats(1e-6, 1e20), watts, watts, watts)
property_names = texts.filter(lambda key: key not in ("role", "sleep_pstates") and not key.startswith("watt"))


@st.composite
def platforms(draw: st.DrawFn) -> Platform:
    names = sorted(draw(st.lists(host_names, min_size=1, max_size=5, unique=True)), key=str.encode)
    hosts = []
    for number, name in enumerate(names):
        sleeps = draw(st.integers(0, 2))
        computing = draw(st.integers(1, 3))
        pstates = draw(st.lists(power_states, min_size=computing + 3 * sleeps, max_size=computing + 3 * sleeps))
        first = [computing + 3 * k for k in range(sleeps)]
        host = Host(
            id=number,
            name=name,
            pstates=tuple(pstates),
            sleep=tuple(SleepState(p, p + 1, p + 2) for p in first),
            initial_pstate=draw(st.integers(0, computing - 1)),
            has_power=True,
            properties={"role": ""} | draw(st.dictionaries(property_names, texts, max_size=2)),
        )
        hosts.append(host)
    return Platform(hosts=tuple(hosts))


@same_folder
@given(platform=platforms(), comment=texts)
def test_a_written_platform_is_read_again(platform: Platform, comment: str, tmp_path: Path) -> None:
    path = tmp_path / "platform.xml"
    write_platform(path, platform, comment)
    again = load_platform(path, energy=True)
    for read, written in zip(again.hosts, platform.hosts, strict=True):
        assert (read.id, read.name, read.pstates, read.sleep) == (
            written.id,
            written.name,
            written.pstates,
            written.sleep,
        )
        assert (read.initial_pstate, read.has_power) == (written.initial_pstate, True)
        assert read.properties.items() >= written.properties.items()
    assert again.master == platform.master


tags = st.sampled_from(["zone", "AS", "host", "cluster", "cabinet", "peer", "prop", "link", "include", "nonsense"])
HOST_KEYS = ("id", "speed", "core", "pstate", "routing", "value", "bw_in", "bw_out")
CLUSTER_KEYS = ("prefix", "suffix", "radical", "bw", "lat", "topology")
WORDS = ("a", "b", "master_host", "0-3", "1,2", "9-1", "role", "storage", "", ":", "²", "9" * 20, "FAT_TREE")
NUMBERS = (
    "1Gf",
    "1Gf, 2f",
    "0f",
    "-1",
    "nan",
    "1e999Gf",
    "sleep_pstates",
    "0:1:2",
    "wattage_per_state",
    "1:2",
    "1:2, 3:4",
)
keys = st.sampled_from(HOST_KEYS + CLUSTER_KEYS)
values = st.sampled_from(WORDS + NUMBERS)


def element(tag: str, attributes: dict[str, str], children: list[str]) -> str:
    written = "".join(f" {key}={quoteattr(value)}" for key, value in attributes.items())
    return f"<{tag}{written}>{''.join(children)}</{tag}>"


elements = st.recursive(
    st.builds(element, tags, st.dictionaries(keys, values, max_size=7), st.just([])),
    lambda inner: st.builds(element, tags, st.dictionaries(keys, values, max_size=4), st.lists(inner, max_size=3)),
    max_leaves=6,
)
BODY = '<platform version="4.1"><zone id="z" routing="Full"><host id="master_host" speed="1f"/>{}</zone></platform>'
files = elements.map(BODY.format)


@same_folder
@given(content=files.map(str.encode) | st.binary(max_size=60), energy=st.booleans())
def test_no_text_makes_the_reader_fail_but_with_its_own_error(content: bytes, energy: bool, tmp_path: Path) -> None:
    path = tmp_path / "platform.xml"
    path.write_bytes(content)
    try:
        platform = load_platform(path, energy=energy)
    except InputError as error:
        assert str(error).startswith(str(path))
        assert len(str(error).splitlines()) == 1
    else:
        assert [host.id for host in platform.hosts + platform.storage] == list(
            range(len(platform.hosts + platform.storage))
        )


@same_folder
@given(content=files.map(str.encode) | st.binary(max_size=60))
def test_no_text_makes_the_linter_fail_but_with_the_readers_error(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "platform.xml"
    path.write_bytes(content)
    try:
        findings = check_platform(path)
    except InputError as error:
        assert len(str(error).splitlines()) == 1
    else:
        assert all(finding.problem and finding.fix and finding.line > 0 for finding in findings)
        try:
            load_platform(path, energy=True)
        except InputError:
            assert findings
