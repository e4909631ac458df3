"""Behaviour cloning, CRR and SAC against known answers: small processes whose best policies are worked out."""

import copy

import numpy as np
import pytest
import torch

from decision.rl.learning import offline, sac
from decision.rl.learning.acting import log_probs
from decision.rl.learning.config import BcConfig, CrrConfig, SacConfig
from decision.rl.learning.networks import JobsNetwork, Mlp, PriorityNetwork
from decision.rl.learning.offline import Critics, Recent, Transitions, adam, draw
from decision.rl.schedulers.base import Layout

LEFT, RIGHT = 0, 1


@pytest.fixture(autouse=True)
def one_thread():
    """Threads that share such small steps wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def batch(steps, states):
    """(state, action, reward, next state or None) as transitions with one-hot features; all actions are valid."""
    state, action, reward, following = zip(*steps, strict=True)
    one_hot = torch.eye(states)
    mask = torch.ones(len(steps), 2, dtype=torch.bool)
    return Transitions(
        one_hot[list(state)],
        mask,
        torch.tensor(action),
        torch.tensor(reward, dtype=torch.float32),
        one_hot[[f or 0 for f in following]],
        mask,
        torch.tensor([f is not None for f in following]).float(),
    )


def network(states, seed=0):
    torch.manual_seed(seed)
    return Mlp(states, 2, (32,))


def test_popart_leaves_values_as_they_were():
    layout = Layout(20, 5, by_core=False, endless=True)
    nets = JobsNetwork(layout, 16), JobsNetwork(layout, 16)
    critics = Critics(nets, 0.1)
    seen = torch.from_numpy(nets[0].prepare(np.random.default_rng(0).random((50, 40), np.float32)))
    before, targets = critics.values(seen), critics.target_values(seen)
    for scale in (30.0, 0.01, 3.0):
        critics.rescale(scale * torch.randn(64) + scale)
        assert critics.mean != 0
        torch.testing.assert_close(critics.values(seen), before, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(critics.target_values(seen), targets, atol=1e-5, rtol=1e-5)


def test_popart_learns_targets_of_mean_0_and_deviation_1():
    critics, targets = Critics([network(3)], 0.01), 500 + 20 * torch.randn(4096)
    for rows in targets.split(64):
        critics.rescale(rows)
    normal = critics.normalise(targets)
    assert normal.mean().abs() < 0.1
    assert normal.std() == pytest.approx(1, abs=0.1)


def test_an_update_lets_the_scale_of_values_follow_its_targets():
    steps, policy = batch([(0, LEFT, 500.0, None), (0, RIGHT, 540.0, None)], 1), network(1)
    critics = Critics([network(1, 1)], 0.01)
    optimizers = [adam(policy, 1e-3), adam(critics.networks, 1e-3)]
    offline.update_crr(policy, critics, optimizers, steps, CrrConfig())
    assert (critics.mean.item(), critics.deviation.item()) == pytest.approx((520, 20), rel=1e-3)


def test_crr_without_its_filter_is_behaviour_cloning():
    steps = batch([(s, s % 2, 1.0, (s + 1) % 4) for s in range(4)], 4)
    cloned, regressed = network(4), network(4)
    one, many = adam(cloned, 1e-2), adam(regressed, 1e-2)
    critics = Critics([network(4, 1)], 0.0)
    values = adam(critics.networks, 1e-2)
    for _ in range(20):
        offline.update_bc(cloned, one, steps, BcConfig(lr=1e-2))
        offline.update_crr(regressed, critics, [many, values], steps, CrrConfig(lr=1e-2, filter="none"))
    for a, b in zip(cloned.parameters(), regressed.parameters(), strict=True):
        assert torch.equal(a, b)


def halves():
    """Two bad walks through five cells: from the door to the middle and back, and from the middle to the goal or away.

    Reaching the last cell pays 1. No walk goes from the door to the goal.
    """
    there = [(0, RIGHT, 0.0, 1), (1, RIGHT, 0.0, 2)]
    back = [(2, LEFT, 0.0, 1), (1, LEFT, 0.0, 0), (0, LEFT, 0.0, None)]
    to_the_goal = [(2, RIGHT, 0.0, 3), (3, RIGHT, 1.0, None), (2, LEFT, 0.0, 1), (3, LEFT, 0.0, 2)]
    return batch([*there, *back, *to_the_goal, *there, *back], 5)


def probabilities(actor):
    with torch.no_grad():
        return torch.softmax(actor.actor(torch.eye(5)), 1)[:4, RIGHT]


def test_crr_joins_two_bad_halves_into_the_good_path_and_cloning_does_not():
    steps, cloned, regressed = halves(), network(5), network(5)
    one, many = adam(cloned, 1e-2), adam(regressed, 1e-2)
    critics = Critics([network(5, 1), network(5, 2)], 1e-2)
    values, config = adam(critics.networks, 1e-2), CrrConfig(discount=0.9, target_rate=0.05)
    for _ in range(600):
        offline.update_bc(cloned, one, steps, BcConfig())
        offline.update_crr(regressed, critics, [many, values], steps, config)
    assert (probabilities(regressed) > 0.9).all()
    assert (probabilities(cloned)[:3] < 0.7).all()


def test_sac_finds_the_soft_optimal_policy_of_two_states():
    discount, temperature, pays = 0.8, 0.5, np.array([[0.0, 0.3], [1.0, -0.5]])  # action 1 changes the state
    value = np.zeros(2)
    for _ in range(500):
        q = pays + discount * np.array([[value[0], value[1]], [value[1], value[0]]])
        value = temperature * np.log(np.exp(q / temperature).sum(1))
    known = np.exp((q - value[:, None]) / temperature)

    steps = batch([(s, a, pays[s, a], s if a == 0 else 1 - s) for s in (0, 1) for a in (0, 1)], 2)
    policy, critics = network(2), Critics([network(2, 1), network(2, 2)], 0.01)
    config = SacConfig(discount=discount, temperature=temperature, target_rate=0.05)
    optimizers = [adam(policy, 3e-3), adam(critics.networks, 3e-3), None]
    for _ in range(1500):
        sac.update_sac(policy, critics, torch.zeros(()), optimizers, steps, config)
    found = log_probs(policy.actor(torch.eye(2)), torch.ones(2, 2, dtype=torch.bool)).exp()
    np.testing.assert_allclose(found.detach().numpy(), known, atol=1e-2)


def test_the_temperature_is_tuned_to_a_share_of_what_valid_actions_allow():
    steps = batch([(s, a, float(a), None) for s in (0, 1) for a in (0, 1)], 2)
    policy, critics = network(2), Critics([network(2, 1)], 0.0)
    log_temperature = torch.tensor(-2.0, requires_grad=True)
    optimizers = [adam(policy, 1e-2), adam(critics.networks, 1e-2), torch.optim.Adam([log_temperature], lr=1e-2)]
    config = SacConfig(entropy=0.5)
    for _ in range(800):
        losses = sac.update_sac(policy, critics, log_temperature, optimizers, steps, config)
    assert losses.entropy == pytest.approx(0.5 * 0.98 * np.log(2), abs=0.02)


def test_a_choice_passes_the_filter_where_it_is_better_than_the_policys_mean():
    values, probs = torch.tensor([[1.0, 0.6, 0.0]]), torch.tensor([[0.9, 0.05, 0.05]])  # a mean of 0.93
    every, first_two = torch.ones(1, 3, dtype=torch.bool), torch.tensor([[True, True, False]])
    steps = batch([(0, 0, 0.0, None)], 2)

    def passes(probs, mask):
        chosen = (steps._replace(mask=mask, action=torch.tensor([action])) for action in range(3))
        return [offline._passes(probs.log(), values, each).item() for each in chosen]

    assert passes(probs, every) == [1, 0, 0], "the second is better than the mean of all, but not of the policy's"
    assert passes(probs.flip(1), every) == [1, 1, 0], "a mean of 0.08"
    assert passes(probs.flip(1), first_two)[:2] == [1, 0], "0.8 without the third"


def test_the_lowest_value_of_the_critics_counts():
    networks = [network(3, seed) for seed in range(3)]
    seen = torch.eye(3)
    lowest = torch.stack([each.actor(seen) for each in networks]).amin(0)
    critics = Critics(networks, 0.0)
    torch.testing.assert_close(critics.values(seen), lowest)
    torch.testing.assert_close(critics.target_values(seen), lowest)


@pytest.mark.parametrize("algorithm", ["crr", "sac"])
@pytest.mark.parametrize(("goes_on", "value"), [(True, 2.0), (False, 1.0)])
def test_what_comes_after_the_end_of_an_episode_is_worth_nothing(algorithm, goes_on, value):
    """A step that pays 1 and leads to itself, of which the next is worth a half; or with which the episode ends."""
    steps = batch([(0, LEFT, 1.0, 0 if goes_on else None)], 1)
    only = torch.tensor([[True, False]])
    steps, policy, critics = steps._replace(mask=only, next_mask=only), network(1), Critics([network(1, 1)], 0.0)
    optimizers = [adam(policy, 1e-2), adam(critics.networks, 1e-2), None]
    for _ in range(300):
        if algorithm == "crr":
            offline.update_crr(policy, critics, optimizers, steps, CrrConfig(discount=0.5, target_rate=0.1))
        else:
            config = SacConfig(discount=0.5, target_rate=0.1, temperature=1e-3)
            sac.update_sac(policy, critics, torch.zeros(()), optimizers, steps, config)
    assert critics.values(torch.eye(1))[0, LEFT].item() == pytest.approx(value, abs=0.02)


def test_masked_actions_are_neither_cloned_nor_valued():
    steps = batch([(0, LEFT, 1.0, 1), (1, LEFT, 1.0, None)], 2)
    only_left = torch.tensor([[True, False]]).expand(2, -1)
    steps = steps._replace(mask=only_left, next_mask=only_left)
    policy, critics = network(2), Critics([network(2, 1)], 0.0)
    optimizers = [adam(policy, 1e-2), adam(critics.networks, 1e-2)]
    before = copy.deepcopy(policy.state_dict())
    assert offline.clone_loss(policy.actor(steps.features), steps).tolist() == [0, 0]
    losses = offline.update_crr(policy, critics, optimizers, steps, CrrConfig())
    assert losses.policy_loss == 0.0  # there is nothing to choose
    assert losses.cloned == 0.0
    assert all(torch.equal(a, b) for a, b in zip(before.values(), policy.state_dict().values(), strict=True))


@pytest.mark.parametrize("make", [lambda: PriorityNetwork(3, (8,)), lambda: Mlp(12, 3, (8,))])
def test_the_last_layers_give_the_logits(make):
    net = make()
    seen = torch.rand(5, 12)
    before = net.actor(seen)
    with torch.no_grad():
        for layer in net.last_layers:
            layer.weight.mul_(2)
            layer.bias.mul_(2).add_(1)
    torch.testing.assert_close(net.actor(seen), 2 * before + 1)


def test_the_newest_transitions_are_kept_and_drawn_evenly():
    recent = Recent(6)
    for k in range(5):
        recent.add(batch([(0, LEFT, 2.0 * k, None), (0, LEFT, 2.0 * k + 1, None)], 2))
    assert sorted(recent.take(np.arange(len(recent))).reward.tolist()) == [4, 5, 6, 7, 8, 9]
    again = Recent(6)
    again.restore(recent.state())
    rng = np.random.default_rng(0)
    drawn = draw((again, recent), 12_000, rng).reward
    counts = np.bincount(drawn.int(), minlength=10)[4:]
    assert (np.abs(counts - 2000) < 200).all()
