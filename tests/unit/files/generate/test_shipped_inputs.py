"""The shipped platforms and workloads: made by their script, valid, and of the load that they promise."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from decision import __version__
from decision.files import load_platform, load_workload
from decision.files.generate.jobs import week_workload
from decision.files.generate.platforms import TAURUS_SPEED
from decision.model.platform import SleepState
from decision.model.workload import Delay, ParallelHomogeneous

REPOSITORY = Path(__file__).parents[4]
SHIPPED = [f"platforms/{n}.xml" for n in ("taurus", "orion_cores", "cluster256", "toy")]
SHIPPED += [f"platforms/{n}.xml" for n in ("fat_tree16", "fat_tree1000", "torus64", "dragonfly64")]
SHIPPED += [f"workloads/{n}.json" for n in ("taurus_week", "taurus_week_flops", "toy")]
SHIPPED += [
    f"workloads/{n}.json" for n in ("lublin_256", "lublin_10000", "wl1_rnda", "orion_days", "green", "topology")
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    spec = importlib.util.spec_from_file_location("make_inputs", REPOSITORY / "scripts/make_inputs.py")
    assert spec and spec.loader
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    folder = tmp_path_factory.mktemp("made")
    script.make(folder)
    return folder


@pytest.mark.parametrize("name", SHIPPED)
def test_the_script_makes_the_shipped_files_again(name: str, made: Path) -> None:
    """They stay as the first release made them, which they name: runs and checkpoints know them by their bytes."""
    again = (made / name).read_text().replace(f"decision {__version__}", "decision 0.1.0")
    assert again == (REPOSITORY / name).read_text()


@pytest.mark.parametrize("name", [name for name in SHIPPED if name.endswith(".json")])
def test_a_shipped_workload_says_where_it_is_from_and_runs_on_its_hosts(name: str) -> None:
    workload = load_workload(REPOSITORY / name)
    assert "Made" in workload.description
    assert max(job.size for job in workload.jobs) <= workload.nb_res


def test_taurus_sleeps_and_wakes_in_its_known_times() -> None:
    platform = load_platform(REPOSITORY / "platforms/taurus.xml", energy=True)
    assert sorted(host.name for host in platform.hosts) == sorted(f"taurus-{i}" for i in range(1, 17))
    host = platform.hosts[0]
    assert host.sleep == (SleepState(13, 14, 15),)
    assert host.pstates[0].full == 190.738
    assert host.pstates[12].full == 125.88
    assert host.pstates[13].idle == 9.75
    assert 1 / host.pstates[14].speed == pytest.approx(6.1)
    assert 1 / host.pstates[15].speed == pytest.approx(151.52)
    assert [p.speed for p in host.pstates[:13]] == sorted((p.speed for p in host.pstates[:13]), reverse=True)


@pytest.mark.parametrize(("name", "hosts"), [("cluster256", 256), ("toy", 4)])
def test_the_other_clusters_have_equal_hosts_with_power(name: str, hosts: int) -> None:
    platform = load_platform(REPOSITORY / f"platforms/{name}.xml", energy=True)
    assert len(platform.hosts) == hosts
    assert platform.has_power
    assert len({host.pstates for host in platform.hosts}) == 1


def test_the_week_has_the_load_that_it_promises() -> None:
    workload = load_workload(REPOSITORY / "workloads/taurus_week.json")
    area = 0.0
    for job in workload.jobs:
        profile = workload.profiles[job.profile]
        assert isinstance(profile, Delay)
        area += job.size * min(job.walltime, profile.duration)
    assert len(workload.jobs) == 1500
    assert area / (16 * 7 * 86_400) == pytest.approx(0.9, abs=0.005)
    assert {job.size for job in workload.jobs} == set(range(1, 17))


def test_computing_jobs_take_as_long_as_waiting_ones() -> None:
    waiting, computing = (
        load_workload(REPOSITORY / f"workloads/{name}.json") for name in ("taurus_week", "taurus_week_flops")
    )
    assert waiting.jobs == computing.jobs
    for name, profile in computing.profiles.items():
        assert isinstance(profile, ParallelHomogeneous)
        assert waiting.profiles[name] == Delay(pytest.approx(profile.flops / TAURUS_SPEED))


def test_days_are_busier_than_nights_and_weekends() -> None:
    workload = week_workload(np.random.default_rng(5), nb_jobs=4000)
    hours = np.array([job.submit_time for job in workload.jobs]) // 3600
    office = ((hours % 24 >= 9) & (hours % 24 < 17) & (hours < 96)).mean()
    weekend = (hours >= 120).mean()
    assert office > 0.4  # 32 of 168 hours
    assert weekend < 0.15  # 48 of 168 hours


def test_the_same_seed_gives_the_same_week() -> None:
    assert week_workload(np.random.default_rng(1)) == week_workload(np.random.default_rng(1))
    assert week_workload(np.random.default_rng(1)) != week_workload(np.random.default_rng(2))
