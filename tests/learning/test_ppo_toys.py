"""PPO against known answers: advantages by hand, environments whose best policy is known, runs that repeat."""

import time
import zlib
from functools import partial

import msgspec
import numpy as np
import pytest
import torch
from helpers.learning_runs import SMALL, curve, task
from helpers.learning_toys import Corridor, TwoQueues

from decision.model.errors import ConfigError, InputError
from decision.rl.learning.acting import Rollout, log_probs
from decision.rl.learning.config import PpoConfig
from decision.rl.learning.ppo import Minibatch, PpoLearner, advantages, ppo_loss
from decision.rl.learning.training import STATE, run_training
from decision.rl.learning.weights import load

LEARNING = PpoConfig(
    steps=100_000, envs=32, rollout=64, minibatch=512, lr=3e-3, discount=0.95, entropy=0.001, threads=1
)


def rollout(reward, value, next_value, ended):
    columns = [torch.tensor([x]).T for x in (reward, value, next_value)]
    nothing = torch.zeros(len(reward), 1)
    return Rollout(nothing, nothing, nothing, nothing, columns[1], columns[0], columns[2], torch.tensor([ended]).T)


def test_advantages_are_those_worked_out_by_hand():
    # discount 0.5, lambda 0.5; an episode terminates after the second step, the fourth one is cut off by the rollout
    r = rollout([1.0, 2.0, 0.0, 4.0], [1.0, 2.0, 3.0, 4.0], [2.0, 0.0, 4.0, 8.0], [False, True, False, False])
    # deltas: 1 + 1 - 1 = 1; 2 + 0 - 2 = 0; 0 + 2 - 3 = -1; 4 + 4 - 4 = 4
    assert advantages(r, 0.5, 0.5).flatten().tolist() == [1 + 0.25 * 0, 0, -1 + 0.25 * 4, 4]


def test_a_truncated_episode_counts_on_what_would_have_come():
    cut = rollout([1.0], [0.0], [10.0], [True])
    over = rollout([1.0], [0.0], [0.0], [True])
    assert advantages(cut, 0.9, 0.95).item() == pytest.approx(10.0)
    assert advantages(over, 0.9, 0.95).item() == pytest.approx(1.0)


def test_with_lambda_1_the_advantage_is_the_discounted_return_less_the_value():
    rng = np.random.default_rng(0)
    reward, value = rng.random(20), rng.random(21)
    r = rollout(list(reward), list(value[:20]), list(value[1:]), [False] * 20)
    expected = [sum(0.9 ** (k - t) * reward[k] for k in range(t, 20)) + 0.9 ** (20 - t) * value[20] for t in range(20)]
    assert advantages(r, 0.9, 1.0).flatten().tolist() == pytest.approx(np.array(expected) - value[:20])


def test_masked_actions_have_no_probability():
    logits = torch.tensor([[5.0, 1.0, 1.0]])
    probability = log_probs(logits, torch.tensor([[False, True, True]])).exp()
    assert probability.tolist() == [[0.0, 0.5, 0.5]]


@pytest.mark.parametrize(("advantage", "counts"), [(1.0, False), (-1.0, True)])
def test_a_ratio_beyond_the_clip_pays_no_more_and_costs_all(advantage, counts):
    # the action's probability rose from 0.4 to 0.6; the value from 0.5 to 0.9, but counts up to 0.2, of a return of 1
    old, spread = np.log(0.4), -0.6 * np.log(0.6) - 0.4 * np.log(0.4)
    columns = (torch.tensor([x], dtype=torch.float32) for x in (old, 0.5, advantage, 1.0))
    batch = Minibatch(torch.ones(1, 2, dtype=torch.bool), torch.tensor([0]), *columns)
    logits = torch.log(torch.tensor([[0.6, 0.4]])).requires_grad_()
    config = PpoConfig(clip=0.2, value_clip=0.2, value_weight=0.5, entropy=0.0)
    loss, (policy, value, entropy, _, outside) = ppo_loss(logits, torch.tensor([0.9]), batch, config)
    assert (policy.item(), value.item(), entropy.item()) == pytest.approx((1.5 if counts else -1.2, 0.045, spread))
    assert (loss.item(), outside.item()) == pytest.approx((policy.item() + 0.5 * 0.045, 1.0))
    loss.backward()
    assert bool(logits.grad.any()) == counts
    dearer, _ = ppo_loss(logits, torch.tensor([0.9]), batch, msgspec.structs.replace(config, entropy=0.1))
    assert dearer.item() == pytest.approx(loss.item() - 0.1 * spread)


def test_ppo_learns_to_serve_the_dear_queue_first(tmp_path):
    rows = curve(TwoQueues(32), tmp_path, ppo=LEARNING)
    best = _cost(lambda length: np.where(length[:, 1] > 0, 1, np.where(length[:, 0] > 0, 0, 2)))
    longest = _cost(lambda length: np.where(length.any(axis=1), length.argmax(axis=1), 2))
    last = np.mean([float(row["cost"]) for row in rows[-5:] if row["cost"]])
    assert last < 1.05 * best < 0.8 * longest


def _cost(choose):
    """Of an episode under a rule that looks at the lengths."""
    envs = TwoQueues(256)
    envs.reset(seed=1)
    costs = []
    for _ in range(500):
        _, _, _, _, info = envs.step(choose(envs._length))
        costs.extend(info["metrics"]["cost"][info["_metrics"]])
    return np.mean(costs)


def test_ppo_walks_the_corridor(tmp_path):
    rows = curve(Corridor(32), tmp_path, ppo=LEARNING, metrics=())
    best = (1 - 0.01 * (Corridor.CELLS - 1)) / Corridor.CELLS
    assert float(rows[-1]["reward"]) > 0.9 * best


def _learner(tmp_path, **changes):
    config = task(TwoQueues(64), tmp_path).manifest.config
    ppo = PpoConfig(**{**_fields(SMALL), "envs": 64, "minibatch": 256, **changes})
    return PpoLearner(msgspec.structs.replace(config, learn=ppo), TwoQueues(64), None, ("cost",))


@pytest.mark.parametrize("compiled", ["off", "on"])
def test_rollouts_and_updates_compute_alike_in_half_precision_and_compiled(tmp_path, monkeypatch, compiled):
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))  # needs no compiler of C++
    learner = _learner(tmp_path, precision="bfloat16", compile=compiled)
    assert (learner._learning is learner.network) == (compiled == "off")
    for parameter in learner.network.parameters():  # far from the beginning, where all actions are alike
        parameter.data += 0.3 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0))
    learner._behaviour.load_state_dict(learner.network.state_dict())
    features, mask, action, before, *_ = (x.flatten(0, 1) for x in learner._collect().rollout)
    rows = torch.randperm(len(action), generator=torch.Generator().manual_seed(1))[:256]
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        logits, _ = learner._learning(features[rows], mask[rows])
    chosen = log_probs(logits, mask[rows]).gather(1, action[rows].unsqueeze(1)).squeeze(1)
    off = ((chosen - before[rows]).exp() - 1).abs()
    assert float(off.quantile(0.99)) < 1e-3, "1e-2 and more where rollouts are in single precision"
    learner.close()


@pytest.mark.nightly
@pytest.mark.parametrize("compiled", ["off", "on"])
def test_it_learns_in_half_precision_and_compiled(tmp_path, monkeypatch, compiled):
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))
    ppo = PpoConfig(**{**_fields(LEARNING), "precision": "bfloat16", "compile": compiled})
    rows = curve(TwoQueues(32), tmp_path, ppo=ppo)
    best = _cost(lambda length: np.where(length[:, 1] > 0, 1, np.where(length[:, 0] > 0, 0, 2)))
    assert np.mean([float(row["cost"]) for row in rows[-5:] if row["cost"]]) < 1.1 * best


def _fields(config):
    return {name: getattr(config, name) for name in config.__struct_fields__}


@pytest.mark.parametrize("overlap", [True, False])
def test_the_same_seed_gives_the_same_curve_and_another_one_another(tmp_path, overlap):
    ppo = PpoConfig(**{**_fields(SMALL), "overlap": overlap})
    first, again = (curve(TwoQueues(8), tmp_path / name, ppo=ppo) for name in "ab")
    assert first == again
    assert curve(TwoQueues(8), tmp_path / "c", ppo=ppo, seed=1) != first


class SlowQueues(TwoQueues):
    """Collecting takes longer than an update."""

    def step(self, actions):
        time.sleep(0.002)
        return super().step(actions)


def test_it_does_not_matter_whether_the_collector_or_the_learner_is_faster(tmp_path):
    assert curve(SlowQueues(8), tmp_path / "slow") == curve(TwoQueues(8), tmp_path / "fast")


@pytest.mark.parametrize("overlap", [True, False])
def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(tmp_path, overlap):
    ppo = PpoConfig(**{**_fields(SMALL), "overlap": overlap})
    curve(TwoQueues(8), tmp_path / "whole", ppo=ppo)
    stops = iter([False, True, True])
    for _ in range(3):
        run_training(task(TwoQueues(8), tmp_path / "parts", ppo=ppo), resume=True, stop=lambda: next(stops, False))
    for name in ("progress.csv", "toy.ckpt"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


def test_a_state_is_compressed_and_without_a_rollout_where_nothing_overlaps(tmp_path):
    ppo = PpoConfig(**{**_fields(SMALL), "overlap": False})
    curve(TwoQueues(8), tmp_path / "whole", ppo=ppo)
    stops = iter([False, True])
    run_training(task(TwoQueues(8), tmp_path / "parts", ppo=ppo), stop=lambda: next(stops, False))
    path = tmp_path / "parts" / STATE
    plain = zlib.decompress(path.read_bytes())
    assert len(path.read_bytes()) < 0.9 * len(plain)
    assert load("state", plain)["learner"]["pending"] is None
    path.write_bytes(plain)  # as earlier versions wrote it
    run_training(task(TwoQueues(8), tmp_path / "parts", ppo=ppo), resume=True)
    assert (tmp_path / "parts" / "toy.ckpt").read_bytes() == (tmp_path / "whole" / "toy.ckpt").read_bytes()


def test_a_damaged_state_is_refused(tmp_path):
    curve(TwoQueues(8), tmp_path)
    (tmp_path / STATE).write_bytes((tmp_path / STATE).read_bytes()[:-50])
    with pytest.raises(InputError, match="cannot be read"):
        run_training(task(TwoQueues(8), tmp_path), resume=True)


def test_rows_that_came_after_the_saved_state_are_made_again(tmp_path):
    curve(TwoQueues(8), tmp_path / "whole")
    stops = iter([False, True])
    run_training(task(TwoQueues(8), tmp_path / "killed"), stop=lambda: next(stops))
    with (tmp_path / "killed" / "progress.csv").open("a") as log:
        log.write("3,1,2,3\n4,half a li")
    run_training(task(TwoQueues(8), tmp_path / "killed"), resume=True)
    whole = (tmp_path / "whole" / "progress.csv").read_bytes()
    assert (tmp_path / "killed" / "progress.csv").read_bytes() == whole


def test_a_folder_with_a_run_is_not_written_over(tmp_path):
    curve(TwoQueues(8), tmp_path)
    with pytest.raises(ConfigError, match="holds a run: resume it, or choose another folder") as caught:
        run_training(task(TwoQueues(8), tmp_path))
    assert caught.value.field == "resume"


def test_a_run_goes_on_only_with_what_it_began_with(tmp_path):
    curve(TwoQueues(8), tmp_path)
    with pytest.raises(ConfigError, match=r"another learn\.lr: 0\.003 and 0\.001"):
        run_training(task(TwoQueues(8), tmp_path, ppo=PpoConfig(**{**_fields(SMALL), "lr": 1e-3})), resume=True)


@pytest.mark.parametrize(
    "options",
    [{"value_clip": 0.2}, {"target_kl": 1e-4}, {"normalise_advantages": False}, {"precision": "bfloat16"}],
    ids=lambda options: next(iter(options)),
)
def test_each_option_changes_what_is_learned_and_stays_finite(tmp_path, options):
    plain = curve(TwoQueues(8), tmp_path / "plain")
    changed = curve(TwoQueues(8), tmp_path / "changed", ppo=PpoConfig(**{**_fields(SMALL), **options}))
    assert changed != plain
    assert all(np.isfinite(float(row["policy_loss"])) for row in changed)


def test_a_critic_may_have_a_learning_rate_of_its_own(tmp_path):
    learner = _learner(tmp_path, lr=3e-4, critic_lr=1e-3, lr_schedule="constant")
    learner.iterate()
    others, critics = learner.optimizer.param_groups
    assert (others["lr"], critics["lr"]) == pytest.approx((3e-4, 1e-3))
    assert {id(each) for each in critics["params"]} == {id(each) for each in learner.network.critic.parameters()}
    assert len(others["params"]) + len(critics["params"]) == len(list(learner.network.parameters()))
    learner.close()
