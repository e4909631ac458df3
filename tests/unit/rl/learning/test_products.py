"""Networks that a training computes by oneDNN's products: to rounding, they are what torch makes of them."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest
import torch
from torch import nn

from decision.rl.learning.acting import Rollout
from decision.rl.learning.config import CrrConfig, NetworkConfig, PpoConfig
from decision.rl.learning.networks import Convolutions, ImageNetwork, Mlp, PriorityNetwork, RecurrentNetwork
from decision.rl.learning.offline import Critics, Seen, Transitions, adam, update_crr
from decision.rl.learning.ppo import adam_of, by_rate, update_ppo
from decision.rl.learning.products import quick
from decision.rl.schedulers.base import Image, Sequences

ACTIONS, INPUTS = 7, 60
KINDS = {
    "mlp": (lambda: Mlp(INPUTS, ACTIONS, (160, 96)), INPUTS),
    "fcn": (lambda: Mlp(INPUTS, ACTIONS, (160,), nn.Tanh), INPUTS),
    "cnn": (lambda: Convolutions(60, 20, (4, 3)), 40),
    "gru": (lambda: RecurrentNetwork(Sequences((5, 3), (5, 4), (5, 5)), ACTIONS, (16, 8)), INPUTS),
    "image": (lambda: ImageNetwork(Image((2, 5, 5), 10), ACTIONS, (3, 4)), INPUTS),
}


def made(kind, seed=0):
    torch.manual_seed(seed)
    make, inputs = KINDS[kind]
    network = make()
    with torch.no_grad():  # the layer of the logits is small at first
        for layer in network.last_layers:
            layer.weight.mul_(50)
    return network, torch.randn(33, inputs)


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_and_gradients_are_those_of_torch(kind):
    network, seen = made(kind)
    mask = torch.ones(33, 20 if kind == "cnn" else ACTIONS, dtype=torch.bool)
    found = []
    for each in (network, quick(network)):
        network.zero_grad()
        logits, value = each(seen, mask)
        (logits * torch.arange(logits.shape[1])).sum().add(value.square().sum()).backward()
        found.append([logits, value, *(parameter.grad for parameter in network.parameters())])
    assert quick(network) is not network
    for ours, wanted in zip(*found, strict=True):
        assert torch.allclose(ours, wanted, rtol=1e-4, atol=1e-5 * float(wanted.abs().max()))
    with torch.inference_mode():
        assert torch.allclose(quick(network).value(seen), found[0][1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", [*KINDS, "priority"])
def test_networks_whose_sides_learn_apart_are_those_that_the_config_names(kind):
    network = PriorityNetwork(3, (160,)) if kind == "priority" else made(kind)[0]
    hidden = (96, 96) if kind in ("cnn", "gru", "image") else (96,)
    assert PpoConfig(threads=2).learns_apart(2, NetworkConfig(kind=kind, hidden=hidden)) == network.apart
    if network.apart:
        shared = {id(each) for each in network.policy.parameters()} & {id(each) for each in network.critic.parameters()}
        assert not shared


def test_what_is_narrow_or_in_half_precision_is_left_to_torch():
    narrow, (wide, seen) = Mlp(INPUTS, ACTIONS, (64, 64)), made("mlp")
    assert quick(narrow) is narrow
    mask = torch.ones(33, ACTIONS, dtype=torch.bool)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(quick(wide)(seen, mask)[0], wide(seen, mask)[0])


def test_a_minibatch_in_parts_is_one_step():
    n, losses = 1100, []
    rng = torch.Generator().manual_seed(3)
    columns = [torch.rand((n, 1), generator=rng) for _ in range(5)]
    action = torch.randint(20, (n, 1), generator=rng)
    rollout = Rollout(
        torch.rand((n, 1, 40), generator=rng),
        torch.ones((n, 1, 20), dtype=torch.bool),
        action,
        -columns[0] - 2,
        *columns[1:4],
        columns[4] > 0.9,
    )
    for rows_at_once in (0, 512):
        network, _ = made("cnn")
        computed = quick(network)
        assert computed.rows_at_once == 512
        computed.rows_at_once = rows_at_once
        optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
        config = PpoConfig(minibatch=n, epochs=1, value_clip=0.2)
        found = update_ppo(computed, optimizer, rollout, config, torch.Generator(), nullcontext())
        losses.append([*found, *torch.cat([p.detach().flatten() for p in network.parameters()]).tolist()])
    assert losses[1] == pytest.approx(losses[0], rel=1e-3, abs=1e-5)


@pytest.mark.parametrize("critic_lr", [0.0, 0.01])
@pytest.mark.parametrize("kind", KINDS)
def test_actor_and_critic_learn_beside_each_other_what_they_learn_together(kind, critic_lr):
    rng = torch.Generator().manual_seed(3)
    inputs, actions = KINDS[kind][1], 20 if kind == "cnn" else ACTIONS
    columns = [torch.rand((9, 5), generator=rng) for _ in range(5)]
    rollout = Rollout(
        torch.rand((9, 5, inputs), generator=rng),
        torch.rand((9, 5, actions), generator=rng) < 0.9,
        torch.zeros((9, 5), dtype=torch.int64),
        -columns[0] - 2,
        *columns[1:4],
        columns[4] > 0.9,
    )
    config = PpoConfig(minibatch=20, epochs=2, lr=0.003, critic_lr=critic_lr, max_gradient=0.1, target_kl=1e-9)
    learned = []
    with ThreadPoolExecutor(1) as thread:
        for beside in (None, thread):
            network, _ = made(kind)
            optimizer = torch.optim.Adam(by_rate(dict(network.named_parameters()), config), **adam_of(config))
            generator = torch.Generator().manual_seed(1)
            for _ in range(2):  # the second goes on with what the optimiser remembers of the first
                found = update_ppo(quick(network), optimizer, rollout, config, generator, nullcontext(), beside)
            moments = optimizer.state_dict()["state"]
            learned.append([found, [*network.parameters()], [t for each in moments.values() for t in each.values()]])
    (losses, *together), (others, *apart) = learned
    assert others == pytest.approx(losses, rel=1e-6)
    for ours, wanted in zip(apart, together, strict=True):
        assert all(torch.equal(*pair) for pair in zip(ours, wanted, strict=True))
    assert not torch.equal(together[0][0], next(made(kind)[0].parameters()))


def sharing():
    policy, critic, other = (made("image", seed)[0] for seed in (0, 1, 2))
    for network in (critic, other):
        network.share_encoder(policy)
    return policy, Critics([critic, other], 0.0)


@pytest.mark.parametrize("fast", [False, True])
def test_a_shared_encoder_reads_a_batch_once_and_learns_from_all_that_was_made_of_it(fast):
    policy, critics = sharing()
    seen_features = torch.randn(12, INPUTS)
    networks = (quick(policy), *critics.quick) if fast else (policy, *critics.networks)
    reads = []
    policy.reader.register_forward_hook(lambda *_: reads.append(1))
    seen = Seen(networks, seen_features)
    made_of_it = [seen.logits(network).square().sum() for network in networks]
    for loss in made_of_it:
        loss.backward()
    seen.backward()
    found = [parameter.grad.clone() for parameter in policy.reader.parameters()]
    assert len(reads) == (0 if fast else 1)
    policy.reader.zero_grad()
    sum(network.actor(seen_features).square().sum() for network in (policy, *critics.networks)).backward()
    for ours, parameter in zip(found, policy.reader.parameters(), strict=True):
        assert torch.allclose(ours, parameter.grad, rtol=1e-4, atol=1e-4 * float(parameter.grad.abs().max()))


def test_a_shared_encoder_moves_once_with_the_critics():
    policy, critics = sharing()
    of_policy, of_critics = adam(policy, 1e-3, critics), adam(critics.networks, 1e-3)
    known = [{id(p) for group in each.param_groups for p in group["params"]} for each in (of_policy, of_critics)]
    encoder = {id(parameter) for parameter in policy.reader.parameters()}
    assert not known[0] & known[1]
    assert encoder <= known[1]
    before = [parameter.clone() for parameter in policy.reader.parameters()]
    ones = torch.ones(12, ACTIONS, dtype=torch.bool)
    columns = torch.randn(12, INPUTS), ones, torch.arange(12) % ACTIONS, torch.rand(12), torch.randn(12, INPUTS), ones
    batch = Transitions(*columns, torch.ones(12))
    update_crr(quick(policy), critics, [of_policy, of_critics], batch, CrrConfig())
    moved = [float((a - b).abs().max()) for a, b in zip(before, policy.reader.parameters(), strict=True)]
    assert all(0 < most <= 1.01e-3 for most in moved), "one step of Adam"
