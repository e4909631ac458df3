"""Policies with predicted run times beside published figures, on a log of ours under the name of a published one."""

import pytest
from numpy.random import default_rng

from decision.experiments.metrics import bounded_slowdowns, mean
from decision.files import load_workload
from decision.model.errors import InputError
from decision.papers.campaign import Parts
from decision.papers.predictsim import POLICIES, PUBLISHED, reproduce_predictsim
from decision.rl.envs import equal_hosts
from decision.simulation import simulate_workloads


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """300 jobs on 8 hosts, of users who ask for four times what their jobs take or more."""
    rng, path, time = default_rng(0), tmp_path_factory.mktemp("log") / "KTH-SP2-made.swf", 0
    lines = ["; MaxProcs: 8"]
    for number in range(1, 301):
        time += int(rng.exponential(100))
        user, run, size = int(rng.integers(5)), int(rng.integers(10, 600)), int(rng.integers(1, 6))
        asked = 4 * run if user else 2400
        lines.append(f"{number} {time} 0 {run} {size} -1 -1 {size} {asked} -1 1 {user} 1 1 1 1 -1 -1")
    path.write_text("\n".join(lines) + "\n")
    return path


def test_figures_stand_beside_what_was_published(log, tmp_path):
    table, claims = reproduce_predictsim(log, Parts(tmp_path)).tables
    rows = {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}
    assert len(rows) == len(POLICIES)
    jobs = load_workload(log)
    own = mean(bounded_slowdowns(simulate_workloads(equal_hosts(8), [jobs], "easy").jobs))
    assert rows["easy"]["here"] == f"{own:.2f}"
    assert rows["easy"]["published"] == "92.58"
    assert rows["easy"]["change"] == f"{own / 92.58 - 1:+.2%}"
    assert rows["easy,backfill_order=sjf,estimate=regression"]["published"] == ""
    for policy in ("easy", "easy,backfill_order=sjf"):
        assert rows[policy]["recovered"] == "0.00"
        assert rows[f"{policy},estimate=perfect"]["recovered"] == "1.00"
    assert rows["easy"]["longest / easy's"] == "1.00"
    slowdown = {policy: float(row["here"].replace(",", "")) for policy, row in rows.items()}
    predicted = slowdown["easy,estimate=last2"] / slowdown["easy"] - 1
    assert float(claims.rows[0][1].rstrip(" %")) / 100 == pytest.approx(predicted, abs=2e-3)
    assert [claims.rows[0][2], claims.rows[-1][2]] == ["refuted", "holds"], "last runs say little; perfect ones do"


def test_a_second_run_repeats_nothing(log, tmp_path):
    first = reproduce_predictsim(log, Parts(tmp_path))
    written = {file: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    assert reproduce_predictsim(log, Parts(tmp_path)) == first
    assert {file: file.stat().st_mtime_ns for file in tmp_path.iterdir()} == written


def test_the_best_triple_is_named_and_who_is_better(log, tmp_path):
    notes = reproduce_predictsim(log, Parts(tmp_path), "SDSC-BLUE").notes
    assert "hindsight has 10.62, their median 17.4" in notes


def test_a_log_of_which_nothing_is_published_has_no_such_figures(log, tmp_path):
    other = tmp_path / "mine.swf"
    other.write_bytes(log.read_bytes())
    found = reproduce_predictsim(other, Parts(tmp_path / "parts"))
    assert {row[1] for row in found.tables[0].rows} == {""}
    assert "Nothing is published" in found.notes


def test_a_name_of_which_nothing_is_published_is_refused_with_the_nearest(log, tmp_path):
    with pytest.raises(InputError, match="KTH: nothing is published for that log; did you mean KTH-SP2"):
        reproduce_predictsim(log, Parts(tmp_path), "KTH")
    assert all(published.best < published.median for published in PUBLISHED.values())
