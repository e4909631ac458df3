"""DBF's claims on windows and splits, by known answers."""

import pytest

from decision.papers.dbf.claims import Result, by_policy, judged_claims, mean_change


def runs(policy, window, *waits, utilization=0.8):
    return [
        Result(policy, window, seed, {"waiting_time": w, "queue_length": w / 100, "utilization": utilization})
        for seed, w in enumerate(waits)
    ]


RESULTS = by_policy(
    [
        *runs("DBF 10-0", (10, 0), 1000, 1010),
        *runs("DBF 9-1", (9, 1), 300, 310),
        *runs("DBF 20-0", (20, 0), 400, 400),
        *runs("DBF 16-4", (16, 4), 200, 204),
        *runs("DBF 10-10", (10, 10), 350, 350),
        *runs("DBF 28-4", (28, 4), 150, 160, utilization=0.795),
        *runs("easy", None, 500, utilization=0.9),
        *runs("sqf+easy", None, 180),
    ]
)


@pytest.mark.parametrize("as_written", [True, False])
def test_each_claim_has_its_change_and_a_verdict(as_written):
    rows = {row[0]: row[1:] for row in judged_claims(RESULTS, as_written).rows}
    known = {what: (row[0], row[1] if as_written else row[2]) for what, row in rows.items()}
    assert known == {
        "DBF 9-1 has less wait than DBF 10-0": ("-70 % (-70 to -69)", "holds"),
        "DBF 9-1 has less queue than DBF 10-0": ("-70 % (-70 to -69)", "holds"),
        "DBF 16-4 has half the wait of DBF 20-0": ("-50 % (-50 to -49)", "holds"),
        "DBF 16-4 has half the queue of DBF 20-0": ("-50 % (-50 to -49)", "holds"),
        "DBF 28-4 has less wait than the best other (sqf+easy)": ("-14 % (-17 to -11)", "holds"),
        "DBF 28-4 has less queue than the best other (sqf+easy)": ("-14 % (-17 to -11)", "holds"),
        "DBF 28-4 has no less utilization than the best other (easy)": ("-12 % (-12 to -12)", "refuted"),
    }


def test_what_the_paper_has_was_not_tried_by_networks_of_ours():
    assert {row[2] for row in judged_claims(RESULTS, as_written=False).rows} == {"not tried"}
    assert {row[3] for row in judged_claims(RESULTS, as_written=True).rows} == {""}


def test_a_change_of_single_runs_has_no_width():
    assert mean_change(RESULTS["sqf+easy"], RESULTS["easy"], "waiting_time") == pytest.approx([-0.64] * 3)
