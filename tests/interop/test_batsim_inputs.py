"""Inputs that people have, under a real Batsim 4.2 and on the embedded engine: the same schedule.

Skipped where there is no ``batsim`` on the path.
"""

from pathlib import Path

import numpy as np
import pytest
from helpers.cap_worlds import hosts, jobs, passes, write_cap
from helpers.real_batsim import find_batsim

from decision.experiments import Engine
from decision.experiments.energy import peak_power
from decision.experiments.inputs import Inputs, PolicyChoice, load_inputs
from decision.experiments.run import RealBatsim, run_to_folder
from decision.files import write_platform, write_workload
from decision.files.generate.events import FailureModel, failure_lines, failures
from decision.files.outputs_read import read_run_record
from decision.model.platform import draw_of
from decision.model.record import RunRecord


@pytest.fixture(scope="module")
def batsim() -> str:
    return find_batsim() or pytest.skip("needs Batsim 4.2 as `batsim` on the path")


def both(inputs: Inputs, policy: str, batsim: str, folder: Path) -> tuple[RunRecord, RunRecord]:
    """A run under Batsim, and on the embedded engine, as files have them."""
    for engine, name in ((Engine.BATSIM, "batsim"), (Engine.EMBEDDED, "own")):
        case = load_inputs(inputs)
        run_to_folder(
            case,
            PolicyChoice(policy=policy),
            folder / name,
            engine=engine,
            batsim=RealBatsim(command=batsim, timeout=60),
        )
    return read_run_record(folder / "batsim"), read_run_record(folder / "own")


def assert_alike(theirs: RunRecord, ours: RunRecord) -> None:
    """Each job started on the same hosts at the same time, to Batsim's rounding."""
    rows = [np.argsort(np.array(record.jobs.id)) for record in (theirs, ours)]
    assert sorted(theirs.jobs.id) == sorted(ours.jobs.id)
    for name in ("start_time", "runtime"):
        values = [getattr(record.jobs, name)[at] for record, at in zip((theirs, ours), rows, strict=True)]
        np.testing.assert_allclose(*values, atol=2e-3)
    assert [theirs.jobs.allocation[at] for at in rows[0]] == [ours.jobs.allocation[at] for at in rows[1]]


@pytest.mark.parametrize("policy", ["sjf+easy,power=idle-timeout,idle_timeout=5", "kamelot"])
@pytest.mark.parametrize("changes", [False, True])
def test_a_cap_is_never_passed(batsim: str, tmp_path: Path, policy: str, changes: bool) -> None:
    rng = np.random.default_rng(5)
    platform = hosts(rng, 8)
    path, times, watts = write_cap(rng, platform, tmp_path)
    if not changes:
        times, watts = np.zeros(1), draw_of(platform).watts[[6]]
    write_platform(tmp_path / "p.xml", platform)
    write_workload(tmp_path / "w.json", jobs(rng, 8 if changes else 6, delays=changes))
    cap = str(path) if changes else repr(float(watts[0]))
    inputs = Inputs(platform=tmp_path / "p.xml", workloads=(tmp_path / "w.json",), energy=True)
    theirs, ours = both(inputs, f"{policy},cap={cap}", batsim, tmp_path)
    assert passes(theirs, times, watts) == [] == passes(ours, times, watts)
    assert peak_power(theirs) == pytest.approx(peak_power(ours))
    assert_alike(theirs, ours)


@pytest.mark.parametrize(
    "policy",
    [
        "sjf+easy,failed=resubmit,checkpoint_every=15,checkpoint=2,restart=3",
        "conservative,failed=resubmit",
        "kamelot,failed=kill",
        "easy,guard=60,failed=resubmit,restart=7",
    ],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_jobs_on_hosts_that_fail(batsim: str, tmp_path: Path, policy: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    write_platform(tmp_path / "p.xml", hosts(rng, 8))
    write_workload(tmp_path / "w.json", jobs(rng, 8, delays=True))
    found = failures(rng, 8, FailureModel(mtbf=150, repair=40, length=400))
    (tmp_path / "f.txt").write_bytes(failure_lines(found, [[host] for host in range(8)]))
    files = {"workloads": (tmp_path / "w.json",), "events": (tmp_path / "f.txt",)}
    theirs, ours = both(Inputs(platform=tmp_path / "p.xml", **files), policy, batsim, tmp_path)
    assert_alike(theirs, ours)
    assert 0 < theirs.lost_work == pytest.approx(ours.lost_work, abs=1e-2)
