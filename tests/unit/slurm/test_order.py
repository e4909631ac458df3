"""Other orders of jobs as Slurm can have them: weights, and a script that runs under Lua."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from decision.model.errors import ConfigError, InputError
from decision.slurm.case import Case
from decision.slurm.recommend import FORMULAS, approximate, diff_of, submit_script
from tests.helpers.slurm_cases import CONF, line, recording, toy

_LUA = next((name for name in ("lua5.3", "lua5.4", "lua") if shutil.which(name)), None)
_STUB = """
slurm = {NO_VAL = 4294967294, NO_VAL16 = 65534, SUCCESS = 0}
os.time = function() return NOW end
dofile(arg[1])
for _, each in ipairs(JOBS) do
    NOW = each.time
    assert(slurm_job_submit(each, {}, 0) == slurm.SUCCESS)
    print(each.site_factor)
end
"""


def _jobs(folder: Path) -> Case:
    """One long job that all others wait for, of different limits and sizes."""
    rows = [line(1, 0, 4, 60, 600)]
    rows += [
        line(k, k, size, limit, 60, Start=f"2026-03-02T08:{10 + k}:00")
        for k, size, limit in ((2, 2, 50), (3, 1, 10), (4, 3, 30), (5, 1, 20), (6, 2, 5))
    ]
    return toy(folder, rows, CONF + "AccountingStorageType=accounting_storage/slurmdbd\n")


def test_small_jobs_first_is_expressed_by_weights(tmp_path: Path) -> None:
    case = _jobs(tmp_path)
    found = approximate(case, case.settings, "sqf", runs=2)
    assert found.tau > 0.99
    assert found.weights["PriorityFavorSmall"] == "YES"
    assert not found.script
    assert found.chosen is found.by_weights
    diff = diff_of(Path(case.folder), case.conf, found, "decision slurm order")
    assert "+PriorityWeightJobSize=100000" in diff
    assert "+PriorityFavorSmall=YES" in diff


def test_short_jobs_first_needs_a_script_and_loses_nothing_with_it(tmp_path: Path) -> None:
    case = _jobs(tmp_path)
    counts: list[tuple[int, int]] = []
    found = approximate(case, case.settings, "sjf", runs=2, show=lambda done, of: counts.append((done, of)))
    assert found.tau < 0.9
    assert counts[0][0] == 0 and counts == sorted(counts) and counts[-1] == (counts[0][1], counts[0][1])  # all of all
    assert "slurm_job_submit" in found.script
    assert found.lost == pytest.approx(0, abs=1)
    assert found.exact.mean < 0  # those that wait have short jobs in front
    assert "+JobSubmitPlugins=lua" in diff_of(Path(case.folder), case.conf, found, "decision slurm order")


@pytest.mark.skipif(_LUA is None, reason="needs Lua: the script is run under lua5.3")
@pytest.mark.parametrize("order", sorted(FORMULAS))
def test_the_script_puts_jobs_in_order_under_lua(tmp_path: Path, order: str) -> None:
    case = recording("basic_backfill")
    jobs = case.jobs[:40]
    (tmp_path / "job_submit.lua").write_text(submit_script(case, order))
    rows = ", ".join(
        f"{{time = {job.submitted}, time_limit = {job.limit / 60:.0f}, min_nodes = {job.nodes}}}" for job in jobs
    )
    (tmp_path / "stub.lua").write_text(f"JOBS = {{{rows}}}\n{_STUB}")
    command = [str(_LUA), str(tmp_path / "stub.lua"), str(tmp_path / "job_submit.lua")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    factors = [float(text) for text in done.stdout.split()]
    seconds, size = np.array([job.limit for job in jobs]), np.array([float(job.nodes) for job in jobs])
    age = np.array([max(1.0, job.submitted - case.begin) for job in jobs])
    numbers = {
        "fcfs": age, "sjf": seconds, "saf": seconds * size, "sqf": size,
        "f1": np.log10(seconds) * size + 870 * np.log10(age),
        "f2": np.sqrt(seconds) * size + 2.56e4 * np.log10(age), "f3": seconds * size + 6.86e6 * np.log10(age),
        "f4": seconds * np.sqrt(size) + 5.3e5 * np.log10(age),
    }  # fmt: skip
    numbers |= {f"l{name[1:]}": -numbers[name] for name in ("fcfs", "sjf", "saf", "sqf") if f"l{name[1:]}" in FORMULAS}
    numbers["lcfs"] = -age
    for one in range(len(jobs)):
        for other in range(one):
            if abs(numbers[order][one] - numbers[order][other]) > 1e-5 * np.ptp(numbers[order]):
                assert (factors[one] > factors[other]) == (numbers[order][one] < numbers[order][other])


def test_a_learned_order_is_given_as_a_table(tmp_path: Path) -> None:
    case = _jobs(tmp_path)
    table = tmp_path / "learned.csv"
    table.write_text("job,number\n" + "".join(f"{job.id},{job.nodes}\n" for job in case.jobs))
    found = approximate(case, case.settings, str(table), runs=2)
    assert found.tau > 0.99
    table.write_text("job,number\n1,5\n")
    with pytest.raises(InputError, match="5 jobs have no number, the first one is 2"):
        approximate(case, case.settings, str(table), runs=2)
    with pytest.raises(ConfigError, match="there is no order 'sjff'"):
        approximate(case, case.settings, "sjff", runs=2)
