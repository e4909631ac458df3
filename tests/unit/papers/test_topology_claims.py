"""Claims of Lan et al. that need no training: sizes of networks, windows by their length, solvers by their time."""

import numpy as np
import pytest

from decision.experiments.statistics import Estimate
from decision.papers.campaign import PaperAgent
from decision.papers.topology.claims import (
    _BEST,
    LOOKS,
    TOPOLOGY_BUDGETS,
    _beside_annealing,
    _claims,
    _Judge,
    _model_table,
    _period_claims,
)
from decision.papers.topology.parts import LINKS, NETWORKS, Contention, Models, ScheduledEpoch
from decision.papers.topology.windows import DYNAMIC_PROGRAM
from decision.rl.learning.config import NetworkConfig
from decision.rl.learning.networks import untrained_network

Q, FEATURES = 100, 5
OURS = PaperAgent("repair", False, 0.1)


@pytest.mark.parametrize(("kind", "published"), [("FCN", (42724, 46884, 60804)), ("CNN", (71260, 71504, 117372))])
def test_fcns_have_the_published_numbers_of_parameters_and_cnns_those_of_the_printed_layers(kind, published):
    numbers = []
    for at in (1, 2, 3):
        name, hidden = NETWORKS[f"{kind}-{at}"]
        network = untrained_network(NetworkConfig(kind=name, hidden=hidden), Q * FEATURES, Q, None, 0)
        numbers.append(sum(weights.numel() for weights in network.policy.parameters()))
    assert tuple(numbers) == published
    assert _BEST in NETWORKS


def test_longer_windows_are_judged_from_the_shortest_to_the_longest():
    costs = {"nsa,undo=false": (100.0, 90.0), "sa,undo=false": (100.0, 104.0), "exact": (100.0, 100.1)}
    found = [
        (
            ScheduledEpoch(None, "text", f"window,solver={solver},period={length}", epoch, 20),
            {"cost": cost, "wait": 10.0 * length},
        )
        for solver, both in costs.items()
        for length, cost in zip((10, 60), both, strict=True)
        for epoch in range(3)
    ]
    rows = {row.claim: row[2:] for row in _period_claims((10, 30, 60), found, "text", _Judge("pay", OURS, 3))}
    assert rows["windows of 60 s cost less than of 10 s, NSA"][2:4] == ("not tried", "holds")
    assert rows["windows of 60 s cost less than of 10 s, SA"][2] == "refuted"
    assert rows["windows of 60 s cost less than of 10 s, exact windows"] == (
        "-0.10 % (-0.10 to -0.10)",
        "",
        "refuted",
        "",
        "",
    )
    assert rows["windows of 60 s wait longer than of 10 s, SA"][:3] == ("+500 s (+500 to +500)", "", "holds")
    assert list(_period_claims((60,), found, "text", _Judge("pay", OURS, 3))) == []


def test_what_takes_longer_than_thirty_seconds_is_not_solved_then():
    result = {
        DYNAMIC_PROGRAM: {"seconds": [0.1, 0.1, 0.1, 0.1], "worths": [1.0, 2.0, 3.0, 4.0]},
        "rows": {"seconds": [29.0, 31.0, 600.0, 2.0], "worths": [1.0, 2.0, None, 4.0]},
    }
    table = _model_table([(Models(None, "text", 4, 600.0), result)])
    at = table.columns.index("no optimum in 30 s")
    assert [row[at] for row in table.rows] == ["0%", "50%"]


def window_costs(**less: float) -> dict[str, np.ndarray]:
    """Mean costs of three seeds: 100, but for so many per cent less of some solvers."""
    names = [f"{name}, walk {steps}" for name in ("FCN-1", "CNN-3") for steps in LOOKS]
    names += [f"SA, walk {2 * steps}" for steps in LOOKS]
    names += ["SA, walk 500", "SA, undo 500", "CNN-3, undo 500", "best start, undo 500", "exact"]
    return {
        name: np.full((3, 1), 100.0 - next((by for word, by in less.items() if name.startswith(word)), 0.0))
        for name in names
    }


def schedules(cost: dict[str, float], wait: dict[str, float]):
    return [
        (ScheduledEpoch(None, "text", policy, epoch, 20), {"cost": cost[policy], "wait": wait[policy]})
        for policy in cost
        for epoch in range(3)
    ]


def communicating(policies: dict[str, tuple[float, float]]):
    """Hops and stretch of each policy."""
    return [
        (Contention("text", links, 0.5, policy, seed, 10), {"hops": hops, "stretch": stretch})
        for links in LINKS
        for policy, (hops, stretch) in policies.items()
        for seed in range(3)
    ]


def test_windows_as_the_paper_tells_of_them_let_its_claims_hold():
    """Networks with convolutions save 2 %, the optimum 7.82 % of what they cost, windows wait for what they save."""
    costs = window_costs(CNN=2.0) | {"exact": np.full((3, 1), 98 / 1.0782)}
    costs["CNN-3, undo 500"] = np.full((3, 1), 98.0)
    budget, own = TOPOLOGY_BUDGETS["smoke"], PaperAgent("repair-paper", True, 1.0)
    walk, nsa, without = ("window,solver=sa,undo=false,period=60", "window,solver=nsa,undo=false,period=60", "fcfs,")
    cost = {walk: 88.0, nsa: 87.7, f"{without}allocation=first-fit": 100.0, f"{without}allocation=tree": 100.0}
    wait = {walk: 90.0, nsa: 90.0, f"{without}allocation=first-fit": 10.0, f"{without}allocation=tree": 10.0}
    judged = _Judge("the window", own, 3)
    found = [
        *schedules(cost, wait),
        *communicating({"random": (5.0, 1.4), "tree": (3.0, 1.1), "slurm-tree": (4.0, 1.2)}),
    ]
    rows = {row.claim: row.verdict for row in _claims(budget, found, "text", costs, judged)}
    ours = {  # what we say beside it: moves that are undone, the best start, and hosts without windows
        "SA-500 that undoes costs less than SA-1000",
        "SA-500 that undoes costs less than NSA-500",
        "the best start, without a network, costs less than SA-500, both undo",
        "FCFS with allocation=tree costs less than those windows, at FCFS's waiting",
    }
    assert {name for name, verdict in rows.items() if verdict == "refuted"} == ours
    assert {name for name, verdict in rows.items() if verdict == "holds"} == rows.keys() - ours
    assert len(rows) - len(ours) == 9


def test_figure_5_compares_a_network_with_twice_as_many_steps_of_annealing():
    costs = window_costs() | {f"SA, walk {2 * steps}": np.full((3, 1), 0.2 * steps) for steps in LOOKS}
    costs |= {f"CNN-3, walk {steps}": np.full((3, 1), 0.1 * steps) for steps in LOOKS}
    found = _beside_annealing(TOPOLOGY_BUDGETS["smoke"]._replace(networks=("CNN-3",)), costs)
    assert [each.value for each in found["CNN-3"]] == pytest.approx([50.0] * 6)


def test_figures_4_to_6_show_what_was_found_in_its_place(tmp_path):
    pytest.importorskip("matplotlib")
    from decision.papers.topology.figures import beside_annealing, costs_and_waits, reward_curves

    for seed, rewards in enumerate(((-10, -6), (-14, -8))):
        lines = [f"{1000 * (k + 1)},{reward}" for k, reward in enumerate(rewards)]
        (tmp_path / f"{seed}.csv").write_text("\n".join(("steps,reward", *lines, "")))
    axes = reward_curves({"text": {"CNN-3": [tmp_path / "0.csv", tmp_path / "1.csv"]}}, "the window").axes[0]
    (line,), (band,) = axes.get_lines(), axes.collections
    assert (line.get_xdata().tolist(), line.get_ydata().tolist()) == ([1, 2], [-12, -7])
    corners = {tuple(corner) for corner in band.get_paths()[0].vertices.tolist()}
    assert corners == {(1, -14), (2, -8), (1, -10), (2, -6)}, "the range of seeds"
    values = [Estimate(1.5, 1.0, 2.0), Estimate(0.5, 0.0, 1.0)]
    axes = beside_annealing({"text": {"CNN-3": values}}, (500, 600), {"CNN-3": (1.34, 1.03)}, 3).axes[0]
    ours = axes.containers[0].lines[0]
    assert ours.get_ydata().tolist() == [1.5, 0.5]
    assert ours.get_xdata() == pytest.approx([0, 1]), "over the steps"
    assert [1.34, 1.03] in [list(line.get_ydata()) for line in axes.get_lines()], "published"
    both = Estimate(30.0, 29.0, 31.0), Estimate(200.0, 190.0, 210.0)
    late = Estimate(25.0, 24.0, 26.0), Estimate(260.0, 250.0, 270.0)
    found = {"text": {"fcfs": {0.0: both}, "window": {10.0: both, 60.0: late}}}
    cost, wait = costs_and_waits(found, 10).axes
    assert [axes.containers[0].lines[0].get_ydata().tolist() for axes in (cost, wait)] == [[30, 25], [200, 260]]
    assert cost.containers[0].lines[0].get_xdata().tolist() == [10, 60]
    dashed = [axes.get_lines()[0].get_ydata() for axes in (cost, wait)]
    assert [list(line) for line in dashed] == [[30, 30], [200, 200]], "without windows"
