"""The linter's rules about networks are SimGrid's own: what it calls wrong does not load there, what it mends does."""

import json
import subprocess
from pathlib import Path

import pytest
from helpers.simgrid_platforms import PROBE

from decision.files.platform_check import check_platform
from decision.files.simgrid.values import DOCTYPE

RIGHT = f"""<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "{DOCTYPE}">
<platform version="4.1">
  <zone id="AS0" routing="Full">
    <zone id="head" routing="Full"><host id="master_host" speed="1Gf"/></zone>
    <cluster id="c" prefix="n-" suffix=".org" radical="0-3" speed="1Gf" bw="125MBps" lat="50us"/>
    <link id="up" bandwidth="1.25GBps" latency="100us" sharing_policy="SPLITDUPLEX"/>
    <zoneRoute src="head" dst="c" gw_src="master_host" gw_dst="n-c_router.org">
      <link_ctn id="up" direction="UP"/>
    </zoneRoute>
  </zone>
</platform>
"""
ENDS = 'gw_src="master_host" gw_dst="n-c_router.org"'
WRONG = {
    "swapped gateways": (ENDS, 'gw_src="n-c_router.org" gw_dst="master_host"'),
    "missing router": ("n-c_router.org", "c_router"),
    "gateway elsewhere": ('gw_dst="n-c_router.org"', 'gw_dst="master_host"'),
    "router of a torus": ('lat="50us"/>', 'lat="50us" topology="TORUS" topo_parameters="2,2"/>'),
    "no such zone": ('dst="c"', 'dst="d"'),
    "no such link": ('link_ctn id="up"', 'link_ctn id="down"'),
    "no direction": (' direction="UP"', ""),
    "hosts beside zones": ('<zone id="head" routing="Full"><host id="master_host" speed="1Gf"/></zone>', "<host "
    'id="master_host" speed="1Gf"/>'),
    "routes first": ('    <cluster', '    <zoneRoute src="head" dst="c" gw_src="a" gw_dst="b"/><cluster'),
    "unknown routing": ('id="head" routing="Full"', 'id="head" routing="Fulll"'),
    "unknown unit": ("1.25GBps", "10gbps"),
    "no DOCTYPE": (f'<!DOCTYPE platform SYSTEM "{DOCTYPE}">\n', ""),
    "another DOCTYPE": (DOCTYPE, "simgrid.dtd"),
    "no route": ("zoneRoute", "bypassZoneRoute"),
}  # fmt: skip


def loads(python: str, path: Path) -> bool:
    """Whether SimGrid loads the file and finds routes between the master and the hosts, and between hosts."""
    pairs = [("master_host", "n-0.org"), ("n-3.org", "master_host"), ("n-0.org", "n-3.org")]
    wanted = {"platform": str(path), "energy": False, "master": "master_host", "pairs": pairs, "tasks": []}
    run = subprocess.run([python, PROBE], input=json.dumps(wanted), capture_output=True, text=True, timeout=60)
    return run.returncode == 0 and all(route["links"] for route in json.loads(run.stdout)["routes"])


def test_a_platform_without_findings_loads(python: str, tmp_path: Path) -> None:
    (tmp_path / "p.xml").write_text(RIGHT)
    assert check_platform(tmp_path / "p.xml") == []
    assert loads(python, tmp_path / "p.xml")


@pytest.mark.parametrize("mistake", WRONG)
def test_what_does_not_load_has_a_finding(python: str, tmp_path: Path, mistake: str) -> None:
    right, wrong = WRONG[mistake]
    assert right in RIGHT
    (tmp_path / "p.xml").write_text(RIGHT.replace(right, wrong))
    assert check_platform(tmp_path / "p.xml")
    assert not loads(python, tmp_path / "p.xml")
