"""The numbers of DeepScheduling's claims, on days that fit on paper, and its rules in the agent's own environment."""

import numpy as np
import pytest
from helpers.env_toys import workload
from helpers.policy_toys import platform

from decision.model.dates import DAY_LEAD
from decision.papers.deepscheduling import (
    DEEPSCHEDULING,
    FIRST_FIT,
    JOINT,
    _jobs,
    _learned_days,
    _table,
    best_rule,
    case,
    claims,
    some_days,
)
from decision.papers.deepscheduling.claims import SIMPLE_RULES, Days, Jobs, compare_days, play_days, rule
from decision.rl.envs import make_setup

MINUTE = 60.0
JOBS = Jobs(np.array([0, 0, 1, 1, 1]), np.array([1.0, 2, 1, 1, 4]), np.full(5, 10.0), np.array([0.0, 1, 0, 1, 1]))
EACH = np.ones(2)


def days(waits, waste=(1.0, 3.0), switches=(2.0, 2.0)):
    none = np.zeros(2)
    return Days(np.array([2, 3]), np.array(waste), np.array(switches), none, none, none, np.array(waits, float))


def test_statistics_of_two_days():
    some = days([0, 10, 20, 40, 80])
    assert claims.waste(some, JOBS, EACH) == 4
    assert claims.pooled_wait(some, JOBS, EACH) == 30
    assert claims.pooled_wait(some, JOBS, np.array([1.0, 0])) == 5
    assert claims.trimmed_wait(some, JOBS, EACH) == pytest.approx((0.5 * 0 + 10 + 20 + 40 + 0.5 * 80) / 4)
    assert claims.job_slowdowns(some, JOBS).tolist() == [1, 2, 3, 5, 9]
    assert claims.per_processor(some, JOBS, EACH) == pytest.approx((0.5 * 1 + 1 + 9 / 4 + 3 + 0.5 * 5) / 4), (
        "1 at least"
    )
    assert claims.share_slowed(some, JOBS, EACH) == 3 / 5
    assert claims.sequential_slowdown(some, JOBS, EACH) == pytest.approx((2 + 5 + 9) / 3)
    assert claims.within_range(np.array([1.0, 2, 3, 2, 100]), np.ones(5, bool)).tolist() == [1, 1, 1, 1, 0]


def test_a_change_is_of_means_over_seeds_and_its_interval_is_paired_by_days():
    base = days([0, 10, 20, 40, 80])
    worse = [days([0, 10, 20, 40, 80], waste=(1.1, 3.3)), days([0, 10, 20, 40, 80], waste=(1.3, 3.9))]
    found = compare_days(claims.waste, worse, [base], JOBS, samples=200)
    assert found.value == pytest.approx(0.2)
    assert (found.low, found.high) == (pytest.approx(0.1), pytest.approx(0.3)), "days differ by the same share"


def test_the_best_rule_waits_and_switches_no_more_than_first_fit():
    bound = "first-fit,start=bound,patience={}"
    found = {
        "First-Fit": [days([10, 10, 10, 10, 10])],
        bound.format(0): [days([9, 10, 10, 10, 10], waste=(1.0, 2.0))],
        bound.format(300): [days([20, 10, 10, 10, 10], waste=(0.0, 1.0))],
        bound.format(600): [days([9, 10, 10, 10, 10], waste=(0.0, 1.0), switches=(2.0, 3.0))],
    }
    assert best_rule(found, JOBS) == bound.format(0)
    assert best_rule({name: found[name] for name in ("First-Fit", bound.format(300))}, JOBS) == ""
    assert best_rule(found, JOBS, "First-Fit", wait=1.2) == bound.format(300), "a wait of 12 is at most 1.2 times 10"
    kept, jobs = some_days(found["First-Fit"][0], JOBS, 1, 2)
    assert (kept.jobs.tolist(), len(kept.wait), jobs.day.tolist()) == ([3], 3, [0, 0, 0])


def starts(name, *rows):
    """Minutes after the submission of the first job at which each starts, two servers of two cores."""
    on = platform(4, sleeps=True, wake=60.0, doze=180.0, cores=2)
    trace = workload(4, *((600 + at * MINUTE, n, wall * MINUTE, run * MINUTE) for at, n, wall, run in rows))
    played = play_days(make_setup(trace, on, encoder="deepscheduling"), [0], rule(name))
    submit = np.array([job.submit_time for job in trace.jobs])
    assert played.used[0] == sum(n * run * MINUTE for _, n, _, run in rows)
    return ((submit + played.wait - 600) / MINUTE).tolist()


def test_first_fit_binds_what_fits_and_easy_what_ends_before_the_head_may_start():
    rows = [(0, 3, 30, 20), (1, 2, 10, 10), (1, 1, 100, 10), (1, 1, 15, 10)]
    assert starts("First-Fit", *rows) == [1, 21, 1, 11], "the third job takes the fourth core"
    assert starts("EASY", *rows) == [1, 21, 21, 1], "the third would not end before minute 31"
    assert starts("SAF", *rows) == [1, 21, 21, 1]
    rows = [(0, 2, 30, 20), (0, 1, 60, 50), (1, 3, 10, 10), (1, 1, 40, 10)]
    assert starts("EASY", *rows) == [1, 1, 21, 31], "the first to end frees two cores: enough for the head at minute 31"


def test_saf_looks_at_the_smallest_area_first():
    rows = [(0, 3, 30, 20), (1, 2, 10, 10), (1, 1, 20, 10), (1, 1, 15, 10)]
    assert starts("EASY", *rows) == [1, 21, 1, 11]
    assert starts("SAF", *rows) == [1, 21, 11, 1]
    rows = [(0, 2, 30, 20), (1, 3, 10, 10), (1, 2, 15, 10), (1, 1, 20, 10)]  # which is shorter has the larger area
    assert starts("EASY", *rows) == [1, 22, 2, 22], "the second server wakes for it, and again for the head"
    assert starts("SAF", *rows) == [1, 22, 12, 2]
    assert set(SIMPLE_RULES) == {"First-Fit", "EASY", "SAF"}
    assert DAY_LEAD == 3600


def test_figures_show_mean_percentiles_and_extremes_of_the_seeds_and_lines_that_are_told_apart():
    pytest.importorskip("matplotlib")
    from decision.papers.deepscheduling.figures import cumulative

    same = days([0, 10, 20, 40, 80])
    learned = [days([0, 10, 20, 40, 80], waste=(60.0 * k, 60.0 * k)) for k in range(1, 12)]
    found = {"First-Fit": [same], "EASY": [same], "SAF": [same], "learned": learned}
    figure = cumulative("orion", found, JOBS, 1)
    lines, (band,) = figure.axes[0].get_lines(), figure.axes[0].collections
    looks = {(line.get_linestyle(), line.get_linewidth(), line.get_color()) for line in lines[:4]}
    assert len(looks) == 4
    assert len({line.get_linewidth() for line in lines[:3]}) == 3, "one on another is seen"
    mean, least, most = (line.get_ydata().tolist() for line in lines[3:6])
    assert (mean, least, most) == ([6.0, 6.0], [1.0, 1.0], [11.0, 11.0])
    edges = band.get_paths()[0].vertices[:, 1]
    assert (edges.min(), edges.max()) == (2.0, 10.0), "the 10th and 90th percentile"
    assert "11 seeds" in figure.get_suptitle()
    assert "1 seed" in cumulative("orion", {"EASY": [same]}, JOBS, 1).get_suptitle()
    wait, slowdown = (axes.get_lines()[0].get_ydata().tolist() for axes in figure.axes[1:])
    assert wait == pytest.approx([5 / 60, (5 + 140 / 3) / 2 / 60]), "minutes; means of days, and of these up to each"
    assert slowdown == pytest.approx([1, (1 + (3 + 5 + 9 / 4) / 3) / 2]), "a core each, but two and four"


def test_figures_3_and_4_are_of_all_seeds():
    pytest.importorskip("matplotlib")
    from decision.papers.deepscheduling.figures import sequential_slowdowns, slowdown_shares

    some, others = days([0, 10, 20, 40, 80]), days([0, 0, 0, 40, 80])  # slowdowns 1, 2, 3, 5, 9 and 1, 1, 1, 5, 9
    figure = slowdown_shares("orion", {"EASY": [some], "learned": [some, others]}, JOBS)
    groups = [container for container in figure.axes[0].containers if len(container) == 5]
    shares = [[bar.get_height() for bar in group] for group in groups]
    assert shares[-1] == pytest.approx([0.4, 0.2, 0.4, 0, 0]), "1, to 5, to 10, to 50, above"
    assert shares[0] == pytest.approx([0.2, 0.4, 0.4, 0, 0])
    assert "2 seeds" in figure.get_suptitle()
    figure = sequential_slowdowns("orion", {"EASY": [some], "learned": [some, others]}, JOBS)
    level = [line.get_ydata()[0] for line in figure.axes[0].get_lines() if len(set(line.get_ydata())) == 1]
    assert sorted(level) == [1, 2, 5, 5, 9, 9], "least, median and most: of 2, 5 and 9; of these and 1, 5 and 9"
    assert "jobs together of 2 seeds" in figure.get_suptitle()


def test_ten_runs_learn_from_four_fifths_of_all_days(tmp_path):
    full = DEEPSCHEDULING.budgets["full"]
    learned = [part for part in DEEPSCHEDULING.parts(full, tmp_path) if part.who == "learned"]
    runs = {(part.cluster, part.seed) for part in learned}
    assert runs == {(cluster, seed) for cluster in ("orion", "graphite", "econome") for seed in range(10)}
    assert (full.days, full.steps, full.preset) == (None, 25_000_000, "deepscheduling-paper")
    assert _learned_days(case("orion", 20)[1]) == 16


@pytest.mark.parametrize(("cluster", "verdict"), [("orion", "holds"), ("econome", "refuted")])
def test_what_is_learned_wastes_less_but_on_econome_and_what_is_alike_is_said_to_be(cluster, verdict):
    """All schedules are alike, but that what is learned wastes 10 % less."""
    budget = DEEPSCHEDULING.budgets["full"]._replace(days=20, samples=20)
    jobs = _jobs(case(cluster, budget.days)[1])
    ones, count = np.ones(jobs.day[-1] + 1), np.bincount(jobs.day)
    waits = np.random.default_rng(0).exponential(1000.0, len(jobs.day))
    same = Days(count, 5 * ones, ones, 9 * ones, ones, ones, waits)
    found = {name: [same] for name in (*SIMPLE_RULES, JOINT, FIRST_FIT)}
    found["learned"] = [same._replace(waste=4.5 * ones)] * 3
    rows = {row[0]: row[2:4] for row in _table(cluster, budget, found).rows if row[3]}
    assert rows.pop("waste, learned against EASY") == ("-10.0% (-10.0% to -10.0%)", verdict)
    assert {row[0] for row in rows.values()} == {"+0.0% (+0.0% to +0.0%)"}
    alike = {name for name, (_, known) in rows.items() if known == "holds"}
    assert alike == {
        "waste, EASY against First-Fit",
        "waste, SAF against First-Fit",
        "slowdown per processor, learned against First-Fit",
    }
    assert {known for name, (_, known) in rows.items() if name not in alike} == {"refuted"}
