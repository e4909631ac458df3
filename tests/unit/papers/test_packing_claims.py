"""The claims of the packing paper: counts of its own tables, as a reader makes them by hand."""

import numpy as np
import pytest
from helpers.env_toys import workload

from decision.papers.campaign import PaperAgent
from decision.papers.packing import upper_bound
from decision.papers.packing.claims import (
    GRID,
    METHODS,
    PACKING_BUDGETS,
    PUBLISHED_4,
    PUBLISHED_5,
    PUBLISHED_6,
    Pair,
    count_claims,
    judged,
    learner_of,
)

OWN = PaperAgent("packing-nn1", True, 1.0)


def test_the_papers_own_agent_has_its_widths_and_a_triple_chosen_from_its_grid():
    assert len(GRID) == len(set(GRID)) == 66, "M is below N_envs times T"
    assert [set(column) for column in zip(*GRID, strict=True)] == [{512, 1024, 2048, 4096, 8192}] * 2 + [{4, 8, 10}]
    tuned = PACKING_BUDGETS["tuned"]
    assert (tuned.tries, tuned.steps, tuned.widths) == (5, 4_000_000, ((1024, 512, 256), (2048, 512, 256)))
    agents = {name: learner_of(budget) for name, budget in PACKING_BUDGETS.items()}
    assert {name for name, agent in agents.items() if agent.own} == {"tuned"}
    assert (agents["full"].share, agents["standard"].share) == (1.0, 0.1)


def test_counts_of_the_published_tables_are_those_made_by_hand():
    found = count_claims(PUBLISHED_4, PUBLISHED_5, PUBLISHED_6)
    assert (found.at_least_simple, found.above_simple, found.below_backfilling) == (14, 13, 18)
    assert found.unlike_below == (1, 7, 2)
    assert (found.own_best, found.own_alone_best) == (11, 5)
    assert (found.own_effect, found.accuracy_effect, found.kind_effect) == pytest.approx(
        (0.029, 0.009, 0.042), abs=5e-4
    )
    assert found.predictions_gain_nothing == 6
    assert (found.wider_at_least, found.wider_above) == (30, 22)


def test_tables_are_read_as_printed():
    assert PUBLISHED_4["WL1_050b"] == {"SJF": 0.46, "SJF w/ BF": 0.49, "FCFS": 0.55, "FCFS w/ BF": 0.53}
    assert PUBLISHED_5["WL2_RND"] == (0.76, 0.76, 0.77)
    assert PUBLISHED_6["WL2_100", "WL1_RND"] == (0.50, 0.52, 0.50)
    assert np.mean(list(PUBLISHED_6.values()), axis=0) == pytest.approx([0.6886, 0.675, 0.6975], abs=1e-4)


def test_no_schedule_exceeds_the_bound():
    # 400 node-seconds for 4 nodes; the last 200 of them come at 100 s, and the last job runs up to 300 s
    jobs = workload(4, (0, 2, 100, 100), (100, 1, 200, 200))
    assert upper_bound(jobs, 4) == pytest.approx(400 / (4 * 300))
    assert upper_bound(workload(4, (0, 4, 100, 100), (0, 4, 100, 100)), 4) == 1


def test_each_claim_of_the_published_tables_has_a_verdict_by_the_common_rule():
    own = {(x, m, f"{x}a"): row[k] for x, row in PUBLISHED_5.items() for k, m in enumerate(METHODS)}
    others = {(x, m, f"{t}b"): row[k] for (x, t), row in PUBLISHED_6.items() for k, m in enumerate(METHODS)}
    pair = Pair(PUBLISHED_4, own | others)
    worse = Pair(PUBLISHED_4, {key: value - 0.1 for key, value in own.items()} | others)
    found = [
        [(row[1].split()[0], *row[2:4]) for row in judged(pairs, OWN).rows]
        for pairs in ([pair] * 3, [pair, pair, worse])
    ]
    assert found[0] == [
        ("+0.059", "holds", ""),
        ("-0.059", "holds", ""),
        ("+0.052", "holds", ""),
        ("+0.029", "holds", ""),
        ("+0.013", "holds", ""),
        ("+0.022", "holds", ""),
    ]
    assert found[1][0] == ("+0.026", "undecided", "")
    assert {row[2] for row in judged([pair] * 3, OWN._replace(own=False)).rows} == {"not tried"}
    assert {row[2] for row in judged([pair], OWN).rows} == {"undecided (1 run)"}
    same = Pair(PUBLISHED_4, {key: 0.5 - 1e-6 * (key[1] == "NN2") for key in pair.learned})
    assert judged([same], OWN).rows[-1][1] == "+0.000 (+0.000 to +0.000)", "no minus before a zero"
