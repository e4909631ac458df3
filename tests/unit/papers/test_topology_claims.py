"""Claims of Lan et al. that need no training: sizes of networks, windows by their length, solvers by their time."""

import pytest

from decision.papers.campaign import PaperAgent
from decision.papers.topology.claims import _BEST, _Judge, _model_table, _period_claims
from decision.papers.topology.parts import NETWORKS, Models, ScheduledEpoch
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
