"""Networks: what they see and what they must not depend on."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from decision.policies.placement.search import logits  # noqa: E402
from decision.rl.learning.config import NetworkConfig  # noqa: E402
from decision.rl.learning.networks import JobsNetwork, PriorityNetwork, as_repair, make_network  # noqa: E402  # noqa: E402
from decision.rl.schedulers.base import Layout, Sequences  # noqa: E402

CORES = Layout(cluster=8, window=3, by_core=True, endless=True)
POOLS = Layout(cluster=4, window=3, by_core=False, endless=False)
EVERYTHING = torch.ones(6, 4, dtype=torch.bool)


@pytest.fixture(autouse=True)
def _same_weights_in_every_process():
    """Torch's first seed differs from process to process, and some networks of these sizes have no live unit."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def observation(cluster, *jobs):
    return np.array([[*cluster, *(x for job in jobs for x in job)]], np.float32)


def features(layout, seen):
    network = JobsNetwork(layout, 8)
    out = network.prepare(seen)
    return out[0, : network.nb_cluster], out[0, network.nb_cluster :].reshape(layout.window, -1)


def test_a_job_sees_when_as_many_cores_as_it_needs_will_be_free():
    # three cores free, then one at 0.1, two at 0.2, two at 0.5; jobs of 4, 3 and 8 cores
    cluster = [0, 0.5, 0.2, 0, 0.1, 0, 0.2, 0.5]
    jobs = [(4 / 8, 0.05, 0.0, 1), (3 / 8, 0.3, 0.0, 1), (1.0, 0.3, 0.0, 1)]
    summary, seen = features(CORES, observation(cluster, *jobs))
    scale = np.log1p(1000 * np.array([0.1, 0.0, 0.5])) / np.log(1001)
    assert seen[:, 6] == pytest.approx(scale, abs=1e-6)
    assert seen[:, 5].tolist() == [0, 1, 0]  # fits now
    assert seen[:, 7].tolist() == [1, 0, 0]  # ends before the first job could start, at 0.1
    assert summary[-2] == 3 / 8


def test_pools_tell_the_same_more_coarsely():
    # a quarter free, a quarter within 1/4 of the longest time, a quarter within 1/2, a quarter later
    jobs = [(0.5, 0.2, 0.0, 1), (0.25, 0.3, 0.0, 1), (1.0, 0.3, 0.0, 1)]
    summary, seen = features(POOLS, observation([0.25] * 4, *jobs))
    scale = np.log1p(1000 * np.array([0.25, 0.0, 1.0])) / np.log(1001)
    assert seen[:, 6] == pytest.approx(scale, abs=1e-6)
    assert seen[:, 5].tolist() == [0, 1, 0]
    assert seen[:, 7].tolist() == [1, 0, 0]
    assert summary[-2] == 0.25


@pytest.mark.parametrize("layout", [CORES, POOLS], ids=["endless", "clipped"])
def test_a_wait_is_seen_on_a_logarithmic_scale_without_an_end_where_the_observation_has_none(layout):
    waits = np.array([0.0, 0.5, 100.0])  # over the longest runtime
    shares = waits / (waits + 1) if layout.endless else np.minimum(waits, 1)
    cluster = [0] * layout.cluster if layout.by_core else [0.25] * 4
    _, seen = features(layout, observation(cluster, *((0.5, 0.1, share, 1) for share in shares)))
    known = waits if layout.endless else shares
    assert seen[:, 3] == pytest.approx(np.log1p(1000 * known) / np.log(1001), rel=1e-4)


@pytest.mark.parametrize("layout", [CORES, POOLS], ids=["cores", "pools"])
def test_jobs_that_change_places_change_their_logits_places_and_nothing_else(layout):
    rng = np.random.default_rng(0)
    network = JobsNetwork(layout, 8)
    seen = rng.random((5, network.nb_cluster + 3 * 8), np.float32)
    swapped = seen.copy()
    begin = network.nb_cluster
    swapped[:, begin : begin + 8], swapped[:, begin + 16 :] = seen[:, begin + 16 :], seen[:, begin : begin + 8]
    with torch.inference_mode():
        (logits, value), (other_logits, other_value) = (
            network(torch.from_numpy(x), EVERYTHING[:5]) for x in (seen, swapped)
        )
    assert torch.allclose(logits[:, [2, 1, 0, 3]], other_logits, atol=1e-5)
    assert torch.allclose(value, other_value, atol=1e-5)
    assert not torch.equal(logits[:, 0], logits[:, 2])


@pytest.mark.parametrize("kind", ["mlp", "jobs"])
def test_the_actor_alone_says_what_the_network_says(kind):
    network = make_network(NetworkConfig(kind=kind, hidden=(16,)), 20, 4, CORES)
    seen = torch.from_numpy(network.prepare(np.random.default_rng(0).random((6, 20), np.float32)))
    assert torch.allclose(network.actor(seen), network(seen, EVERYTHING)[0], atol=1e-6)
    assert torch.allclose(network.value(seen), network(seen, EVERYTHING)[1], atol=1e-6)
    assert network(seen, EVERYTHING)[0].shape == (6, 4)
    assert network(seen, EVERYTHING)[1].shape == (6,)


def test_each_of_three_sequences_has_a_recurrent_cell_of_its_own():
    """Those of DeepScheduling: 20 jobs, 20 that run, 20 snapshots; 64 units each, 128, and 21 actions."""
    sequences = Sequences((20, 3), (20, 3), (20, 8))
    network = make_network(NetworkConfig(kind="gru", hidden=(64, 128)), 280, 21, sequences)
    cells = sum(3 * (64 * numbers + 64 * 64 + 2 * 64) for numbers in (3, 3, 8))
    layers = 192 * 128 + 128 + 128 * 21 + 21
    assert sum(weight.numel() for weight in network.policy.parameters()) == cells + layers
    seen = torch.from_numpy(np.random.default_rng(0).random((4, 280), np.float32)).requires_grad_()
    network.actor(seen).square().sum().backward()
    assert all(weight.grad is not None and weight.grad.any() for weight in network.policy.parameters())
    assert seen.grad.any(0).all(), "all that is seen counts, the oldest, too"


def test_weights_do_not_grow_with_the_window():
    wide = JobsNetwork(CORES._replace(window=128), 32)
    assert sum(p.numel() for p in wide.parameters()) == sum(p.numel() for p in JobsNetwork(CORES, 32).parameters())


def test_a_jobs_priority_depends_on_nothing_but_the_job():
    network = PriorityNetwork(3, (8, 4))
    rng = np.random.default_rng(0)
    seen, other = (torch.from_numpy(network.prepare(rng.random((5, 12), np.float32))) for _ in range(2))
    other[:, 4:8] = seen[:, 4:8]
    mask = torch.rand(5, 3, generator=torch.Generator().manual_seed(0)) < 0.5
    assert torch.equal(network.actor(seen)[:, 1], network.actor(other)[:, 1])
    assert not torch.equal(network.actor(seen)[:, 0], network.actor(other)[:, 0])
    logits, value = network(seen, mask)
    assert torch.allclose(logits[mask], network.actor(seen)[mask], atol=1e-6)
    assert torch.equal(value, network.value(seen))


def test_what_is_masked_changes_no_other_logit():
    network = JobsNetwork(CORES, 8)
    seen = torch.from_numpy(network.prepare(np.random.default_rng(0).random((6, 20), np.float32)))
    mask = torch.rand(6, 4, generator=torch.Generator().manual_seed(0)) < 0.5
    assert torch.allclose(network(seen, mask)[0][mask], network(seen, EVERYTHING)[0][mask], atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "hidden", "parameters"),
    [
        ("fcn", (64, 64), 42_724),
        ("fcn", (64, 64, 64), 46_884),
        ("fcn", (96, 64), 60_804),
        ("cnn", (4, 4), 71_260),
        ("cnn", (8, 4), 71_504),
        ("cnn", (16, 8), 117_372),
    ],
)
def test_networks_of_neural_annealing_are_the_same_in_kernels(kind, hidden, parameters):
    network = make_network(NetworkConfig(kind=kind, hidden=hidden), 500, 100, None)
    assert sum(weight.numel() for weight in network.policy.parameters()) == parameters
    states = np.random.default_rng(0).random((5, 500), np.float32)
    states[:, 200:300] = 1.0
    with torch.no_grad():
        wanted = network.actor(torch.from_numpy(network.prepare(states))).numpy()
    repair = as_repair(network.policy)
    assert len(repair.weights) == parameters
    for state, scores in zip(states, wanted, strict=True):
        assert logits(repair, state, 100) == pytest.approx(scores, abs=1e-5)
