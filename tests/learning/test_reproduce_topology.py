"""The claims of Lan et al., with a budget of a few windows; the authors' list is not needed."""

import csv
import shutil

import numpy as np
import pytest

from decision.papers.campaign import Parts, Verdict
from decision.papers.rlscheduler import JobSequence
from decision.papers.topology import claims as topology
from decision.papers.topology.claims import LOOKS, TOPOLOGY_BUDGETS, reproduce_topology
from decision.papers.topology.parts import list_of_jobs
from decision.papers.topology.windows import EXACT, IN_TURN, PERIODS, PROGRAM, TEXT, _by_rows, annealing, solve_epoch
from decision.policies.placement.windows import groups_of, place_exactly


@pytest.fixture(scope="module", autouse=True)
def few_windows():
    """One for each model, by a solver that soon gives up. With a Batsim on the path there were more claims."""
    smoke = TOPOLOGY_BUDGETS["smoke"]
    few = smoke._replace(models=1, limit=0.2, training=(*smoke.training, "learn.steps=128"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(TOPOLOGY_BUDGETS, "smoke", few)
        patch.setattr(topology.shutil, "which", lambda *_, **__: None)
        yield


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory):
    """The folder, and what was found."""
    folder = tmp_path_factory.mktemp("topology")
    findings = reproduce_topology(Parts(folder))
    return folder / "smoke", findings


def rows(folder):
    with (folder / "results.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_each_claim_is_judged_on_both_trees(reproduced):
    folder, findings = reproduced
    claims, table = findings.tables[0].rows, (folder / "table.md").read_text()
    assert len(claims) == 32
    for tree, number in (("program", 15), ("text", 17)):  # stretch is compared on the text's only
        assert sum(claim[1] == tree for claim in claims) == number
    assert {claim[5] or claim[4] for claim in claims} == {"undecided (2 runs)"}
    assert {(claim[3], claim[4] == Verdict.NOT_TRIED) for claim in claims} == {
        ("", False),
        ("each job; discount 0", True),
    }, "the paper's networks are paid otherwise"
    assert all((folder / f"figure-{number}.svg").stat().st_size > 10_000 for number in (4, 5, 6))
    assert all(claim[0] in table for claim in claims)


def test_figures_are_those_of_the_searches(reproduced):
    folder, _ = reproduced
    found = {}
    for row in rows(folder):
        if row["part"] == "WindowEpoch":
            found.setdefault((row["tree"], row["seed or epoch"]), {})[row["figure"]] = float(row["value"])
    assert len(found) == 4
    for costs in found.values():
        for name in ("SA, walk", "FCN-1, walk", "CNN-3, walk"):
            seen = [costs[f"{name} {2 * steps if name.startswith('SA') else steps}"] for steps in LOOKS]
            assert seen == sorted(seen, reverse=True), "what was best is remembered"
        assert costs["exact"] <= costs["in turn"]


def test_what_was_interrupted_gives_the_same_result(reproduced):
    folder, findings = reproduced
    before = (folder / "results.csv").read_bytes()
    for segment in (folder / "runs").glob("*.jsonl"):  # every second part, a training among them
        segment.write_bytes(b"".join(segment.read_bytes().splitlines(keepends=True)[::2]))
    shutil.rmtree(folder / "text-FCN-1-1")
    again = reproduce_topology(Parts(folder.parent))
    assert (folder / "results.csv").read_bytes() == before
    assert again.tables[0] == findings.tables[0]


def test_a_walk_is_the_beginning_of_a_longer_one():
    jobs = list_of_jobs(None)
    walks = [annealing("long", (30, 60), False, first=100), annealing("short", (30,), False, first=100)]
    costs = solve_epoch(jobs, 0, [IN_TURN, *walks, EXACT], PROGRAM, 4).costs
    assert costs[1] == costs[3] >= costs[2] > costs[4]


def test_a_window_of_an_epoch_has_five_jobs_of_those_that_waited_for_most_periods():
    """Twelve jobs come in a period: those of the first on three hosts, all others on two, for a long time."""
    jobs, sizes = 6 * PERIODS + 1, np.array([3] * 12 + [2] * (6 * PERIODS - 11))  # so many that an epoch has one start
    listed = JobSequence(5.0 * np.arange(jobs), np.full(jobs, 1e6), np.full(jobs, 1e6), sizes)
    windows = solve_epoch(listed, 0, [IN_TURN], PROGRAM, 4).windows
    assert [window.sizes.tolist() for window in windows] == [[3] * 5, [3] * 5, [3, 3, 2, 2, 2], [2] * 5]


def test_costs_are_those_of_the_formulas_of_program_and_text():
    sizes = np.array([3, 5])
    assert PROGRAM.cost(sizes, 18 / 3 + 50 / 5) == 1000 * (1 + 2)  # on one switch all pairs are a hop apart
    assert TEXT.cost(sizes, 18 / 3 + 50 / 5) == 1000 * (2 * 2 + 2 * 4)


def test_the_papers_rows_have_the_optimum_of_the_dynamic_program():
    pytest.importorskip("highspy")
    windows = solve_epoch(list_of_jobs(None), 0, [EXACT], PROGRAM, 3).windows
    for window in windows:
        small = window._replace(sizes=window.sizes[:2] // 4 + 2, groups=window.groups[:, :40])
        held = np.zeros((2, 12), np.int64)
        best = place_exactly(small.groups, small.tree.switches, small.sizes, held)
        assert _by_rows(small, 60.0) == pytest.approx(best)
    # two jobs on three hosts each want the switch that has four; one of them is left three switches of two pods
    crowded = windows[0]._replace(sizes=np.array([3, 3]), groups=groups_of(PROGRAM.down, np.array([0, 0, 0, 0, 1, 4])))
    assert _by_rows(crowded, 60.0) == pytest.approx((9 + 9) / 3 + (1 + 1 + 1 + 4 + 1) / 3)
