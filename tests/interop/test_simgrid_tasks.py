"""Jobs that compute and communicate take, in the real SimGrid, as long as `decision.files.generate.jobs` says."""

from pathlib import Path

import numpy as np
import pytest
from helpers.simgrid_platforms import probe

from decision.files import load_platform, write_platform
from decision.files.generate.jobs import Tasks, as_tasks
from decision.files.generate.platforms import networked
from decision.model.platform import Flat, Link, PowerState
from decision.model.workload import Delay, Job, ParallelHomogeneous, Workload

SPEED, BANDWIDTH, SECONDS, HOSTS = 2e9, 1.25e9, 100.0, 5


@pytest.mark.parametrize(
    ("ratio", "slower", "seconds"),
    [
        (0.0, 1, SECONDS),
        (0.5, 1, SECONDS),
        (1.0, 1, SECONDS),  # as busy as the links can be without delaying the job
        (0.25, 4, SECONDS),
        (1.0, 2, 2 * SECONDS),  # links with half the bandwidth that was stated
        (0.5, 4, 2 * SECONDS),
    ],
)
def test_a_parallel_task_takes_its_run_time_unless_links_are_slower(
    ratio: float, slower: int, seconds: float, python: str, tmp_path: Path
) -> None:
    link = Link(BANDWIDTH / slower, 1e-6)
    write_platform(tmp_path / "p.xml", networked(Flat(HOSTS, link), (PowerState(SPEED),)))
    platform = load_platform(tmp_path / "p.xml")
    jobs = (Job(id="w0!1", submit_time=0.0, size=HOSTS, profile="d"),)
    recorded = Workload(name="w0", jobs=jobs, profiles={"d": Delay(SECONDS)}, nb_res=HOSTS)
    tasks = Tasks(kind="parallel", speed=SPEED, comm_ratio=ratio, bandwidth=BANDWIDTH)
    (profile,) = as_tasks(recorded, tasks).profiles.values()
    assert isinstance(profile, ParallelHomogeneous)
    sent = np.full((HOSTS, HOSTS), profile.bytes)
    np.fill_diagonal(sent, 0.0)
    task = [[host.name for host in platform.hosts], [profile.flops] * HOSTS, sent.ravel().tolist()]
    (found,) = probe(python, platform, [], [task])["tasks"]
    assert found["seconds"] == pytest.approx(seconds, rel=1e-3)
