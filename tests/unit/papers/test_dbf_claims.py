"""DBF's claims on windows and splits, by known answers."""

import pytest

from decision.papers.campaign import PaperAgent
from decision.papers.dbf.claims import Result, by_policy, judged_claims, large_jobs, mean_change

OWN = PaperAgent("dbf-paper", True, 1.0)


def runs(policy, window, *waits, seeds=True, **means):
    return [
        Result(
            policy,
            window,
            seed if seeds else None,
            {"waiting_time": w, "queue_length": w / 100, "utilization": 0.8, "job_load": 10 * w} | means,
        )
        for seed, w in enumerate(waits)
    ]


EVERY = [
    *runs("DBF 10-0", (10, 0), 1000, 1010, 1005),
    *runs("DBF 9-1", (9, 1), 300, 310, 305, large_jobs=0.2),
    *runs("DBF 0-10", (0, 10), 290, 290, 290, large_jobs=0.1),
    *runs("DBF 20-0", (20, 0), 400, 400, 400),
    *runs("DBF 16-4", (16, 4), 200, 204, 202),
    *runs("DBF 10-10", (10, 10), 350, 350, 350),
    *runs("DBF 0-20", (0, 20), 220, 220, 220),
    *runs("DBF 28-4", (28, 4), 150, 160, 155, utilization=0.795),
    *runs("SchedInspector over SJF", None, 900, 900, 900, utilization=0.7, bounded_slowdown=62.2),
    *runs("easy", None, 500, seeds=False, utilization=0.9, job_load=1000),
    *runs("sqf+easy", None, 180, seeds=False, bounded_slowdown=73.3),
]
RESULTS = by_policy(EVERY)
CHECKPOINTS = {"DBF 20-0": [{0: [1000.0], 50: [500.0], 1000: [400.0]}] * 3, "DBF 10-0": [{0: [100.0], 1000: [200.0]}]}


@pytest.mark.parametrize("as_written", [True, False])
def test_each_claim_has_its_change_and_a_verdict(as_written):
    rows = {row[0]: row[1:] for row in judged_claims(RESULTS, PaperAgent("x", as_written, 1.0), CHECKPOINTS).rows}
    known = {what: (row[0], row[1] if as_written else row[2]) for what, row in rows.items()}
    assert known == {
        "DBF 9-1 has less wait than DBF 10-0": ("-70 % (-70 to -69)", "holds"),
        "DBF 9-1 has less queue than DBF 10-0": ("-70 % (-70 to -69)", "holds"),
        "DBF 16-4 has at most half the wait of DBF 20-0": ("-50 % (-50 to -49)", "holds"),
        "DBF 16-4 has at most half the queue of DBF 20-0": ("-50 % (-50 to -49)", "holds"),
        "DBF 0-20 has more wait than the best split (DBF 16-4)": ("+9 % (+8 to +10)", "holds"),
        "DBF 28-4 has less wait than the best other (sqf+easy)": ("-14 % (-17 to -11)", "holds"),
        "DBF 28-4 has less queue than the best other (sqf+easy)": ("-14 % (-17 to -11)", "holds"),
        "the best heuristic (easy) has more utilization than DBF 28-4": ("+13 % (+13 to +13)", "holds"),
        "the best heuristic (easy) has less load than DBF 28-4": ("-35 % (-38 to -33)", "holds"),
        "SchedInspector over SJF has less utilization than all others (DBF 28-4)": ("-12 % (-12 to -12)", "holds"),
        "SchedInspector over SJF has less slowdown than SJF (sqf+easy)": ("-15 % (-15 to -15)", "holds"),
        "DBF 0-10 has fewer placed jobs of more than 128 cores than DBF 9-1": ("-50 % (-50 to -50)", "holds"),
        "DBF 20-0 has most of its gain in wait after 5% of its training": ("+83 % (+83 to +83)", "holds"),
    }


def test_where_nothing_differs_nothing_that_is_claimed_holds():
    """But by a hair, and no zero has a minus before it."""
    kept = {"utilization": 0.8, "job_load": 1.0, "large_jobs": 0.1, "bounded_slowdown": 9.0, "queue_length": 1.0}
    alike = [
        result._replace(means={name: value * (1 - 1e-6 * k) for name, value in {"waiting_time": 5.0, **kept}.items()})
        for k, result in enumerate(EVERY)
    ]
    rows = judged_claims(by_policy(alike), OWN, {}).rows
    assert {row[2] for row in rows} == {"refuted"}
    assert {row[1] for row in rows} == {"+0 % (+0 to +0)"}


def test_a_side_of_one_run_decides_nothing_but_a_heuristic_needs_no_more():
    few = by_policy([*runs("DBF 32-0", (32, 0), 100), *runs("easy", None, 500, seeds=False)])
    assert {row[2] for row in judged_claims(few, OWN, {}).rows} == {"undecided (1 run)"}


@pytest.mark.parametrize(("waits", "verdict"), [((100, 102, 101), "holds"), ((230, 240, 235), "refuted")])
def test_more_than_halving_holds_and_less_does_not(waits, verdict):
    known = by_policy([*runs("DBF 20-0", (20, 0), 400, 400, 400), *runs("DBF 10-10", (10, 10), *waits)])
    rows = {row[0]: row[2] for row in judged_claims(known, OWN, {}).rows}
    assert rows["DBF 10-10 has at most half the wait of DBF 20-0"] == verdict


def test_large_jobs_are_those_of_more_than_128_cores(tmp_path):
    (tmp_path / "types.csv").write_text("cores,walltime,jobs,waiting_time\n128,4,3,1.0\n256,4,1,2.0\n256,16,4,2.0\n")
    assert large_jobs(tmp_path / "types.csv") == 5 / 8


def test_what_the_paper_has_was_not_tried_by_networks_of_ours():
    assert {row[2] for row in judged_claims(RESULTS, OWN._replace(own=False), CHECKPOINTS).rows} == {"not tried"}
    assert {row[3] for row in judged_claims(RESULTS, OWN, CHECKPOINTS).rows} == {""}


def test_a_change_of_single_runs_has_no_width():
    assert mean_change(RESULTS["sqf+easy"], RESULTS["easy"], "waiting_time") == pytest.approx([-0.64] * 3)


def drawn(axes) -> list[float]:
    """The values of a panel's dots with bars, left to right."""
    (bars,) = axes.containers
    return bars.lines[0].get_ydata().tolist()


def test_figure_3_shows_means_over_seeds_of_what_checkpoints_reach():
    pytest.importorskip("matplotlib")
    from decision.papers.dbf.figures import objectives

    # wait, queue and utilization, each with its deviation
    seeds = [{0: [900.0, 10, 30, 3, 0.5, 0.1], 1_000_000: [100.0 + k, 4, 6 + k, 1, 0.8 + k / 100, 0]} for k in (0, 2)]
    figure = objectives({"DBF 20-0": seeds}, 100)
    assert [drawn(axes) for axes in figure.axes] == [pytest.approx(both) for both in ([50, 81], [900, 101], [30, 7])]
    assert figure.axes[1].containers[0].lines[0].get_xdata().tolist() == [0, 1], "millions of steps"
    assert "2 seeds" in figure.get_suptitle()


def test_figures_4_to_6_show_each_window_where_it_belongs():
    pytest.importorskip("matplotlib")
    from decision.papers.dbf.figures import comparison, invisible_jobs, splits

    figure = comparison(RESULTS)
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == list(RESULTS)
    shown = {axes.get_xlabel().replace("\n", " "): axes for axes in figure.axes}
    assert list(shown) == ["wait, s", "queue, jobs", "utilization, %", "load, core-h"]
    for name, least, most in (("wait, s", 155, 1005), ("utilization, %", 79.5, 80)):
        dots = [line.get_data() for line in shown[name].get_lines()[1::2]]
        assert [int(y[0]) for _, y in dots] == list(range(len(RESULTS)))
        by_name = {policy: x[0] for policy, (x, _) in zip(RESULTS, dots, strict=True)}
        assert (by_name["DBF 28-4"], by_name["DBF 10-0"]) == (pytest.approx(least), pytest.approx(most))
    by_size = splits(RESULTS)
    panels, queues = by_size.axes[:3], by_size.axes[3:]
    assert [axes.get_title("left") for axes in panels] == ["M = 10", "M = 20", "M = 32"]
    assert [label.get_text() for label in panels[1].get_xticklabels()] == ["0", "4", "10", "20"], "from the tail"
    assert [drawn(axes) for axes in panels] == [[1005, 305, 290], [400, 202, 350, 220], [155]]
    assert drawn(queues[1]) == pytest.approx([4, 2.02, 3.5, 2.2])
    unseen = by_policy([*runs("DBF 9-1", (9, 1), 5, unseen_jobs=7.0, partial_time=0.25)])
    left, right = invisible_jobs(unseen).axes
    assert [axes.get_lines()[1].get_xdata().tolist() for axes in (left, right)] == [[7], [25]]


def test_figure_7_has_a_circle_for_each_type_of_job():
    pytest.importorskip("matplotlib")
    from decision.papers.dbf.figures import waits_by_type

    found = {"DBF 9-1": {(1, 4.0): (30, 10.0), (256, 16.0): (10, 5000.0)}}
    figure = waits_by_type(found, 100, 5)
    (circles,) = figure.axes[0].collections
    assert circles.get_offsets().tolist() == [[1, 4], [256, 16]], "cores, and requested seconds"
    assert circles.get_array().tolist() == [10, 5000]
    many, few = circles.get_sizes()
    assert many == pytest.approx(3 * few)
    assert "100 of the paper's 1,000 episodes, 5 seeds" in figure.get_suptitle()
