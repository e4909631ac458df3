"""Offline and then online, as Launchpad learns: what stays, what starts again, who explores; one encoder, precision."""

import zlib
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
import torch
from helpers.learning_runs import FILES

from decision.files import load_workload
from decision.model.errors import ConfigError
from decision.rl.envs.demonstrations import record_schedules, replay_schedules
from decision.rl.envs.setup import equal_hosts
from decision.rl.learning import offline, sac
from decision.rl.learning.config import NetworkConfig, SacConfig, load_config
from decision.rl.learning.offline import BcLearner, CrrLearner
from decision.rl.learning.sac import SacLearner
from decision.rl.learning.schedulers import TrainingInputs, choosing_setup, train_scheduler
from decision.rl.learning.training import STATE
from decision.rl.learning.weights import dump, load
from decision.rl.schedulers.base import find_scheduler

SMALL = (
    "learn.envs=2",
    "learn.offline=100",
    "learn.steps=256",
    "learn.warmup=1",
    "learn.updates=0.1",
    "learn.batch=32",
)
HALF, BATCH = "learn.precision=bfloat16", "learn.batch=32"


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Threads that share such small steps wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def world(root):
    workload, platform = load_workload(root / "workloads" / "green.json"), equal_hosts(10)
    setup = choosing_setup(load_config("green-sac"), workload, platform)
    schedules = record_schedules("qos+first-fit", setup, 500, 0)
    image = choosing_setup(load_config("green-paper"), workload, platform)
    return SimpleNamespace(
        compact=setup, data=replay_schedules(setup, schedules), image=image, seen=replay_schedules(image, schedules)
    )


@pytest.fixture
def make(world):
    made = []

    def learner(*changes, preset="green-offline-online", kind=SacLearner):
        config = load_config(preset, [*(SMALL if kind is SacLearner else ()), BATCH, *changes])
        is_image = config.network.kind == "image"
        setup, data = (world.image, world.seen) if is_image else (world.compact, world.data)
        made.append(kind.make(config, find_scheduler("green"), setup, data))
        return made[-1]

    yield learner
    for each in made:
        each.close()


def test_recorded_choices_stay_among_what_is_learned_from_online(make, monkeypatch):
    drawn, draw = [], sac.draw
    monkeypatch.setattr(sac, "draw", lambda *parts: drawn.append(parts[0]) or draw(*parts))
    learner = make()
    for _ in range(2):
        learner.iterate()
    assert drawn[0] == (learner._recorded,)
    assert drawn[-1] == (learner._recorded, learner._recent)
    assert len(learner._recent) == 64


@pytest.mark.parametrize(("changes", "shares"), [((), (0, 0)), (("learn.offline=0",), (0.9, 0.55))])
def test_the_policy_explores_after_a_phase_before_and_random_choices_do_without_one(make, monkeypatch, changes, shares):
    learner = make("learn.epsilon=0.9", "learn.epsilon_last=0.2", "learn.epsilon_steps=1000", *changes)
    learner._mask[:] = torch.zeros_like(learner._mask)
    learner._mask[:, :2] = True
    logits = torch.full(learner._mask.shape, -50.0)
    logits[:, 0] = 50.0  # the policy takes the first action always
    monkeypatch.setattr(learner.network, "actor", lambda features: logits)
    for step, share in zip((0, 500), shares, strict=True):
        other = np.mean([learner._choose(step) for _ in range(1000)])
        assert other == pytest.approx(share / 2, abs=0.03)  # half of the random choices are the first one


def test_all_optimisers_start_again_at_the_switch(make):
    learner = make()
    before = list(learner._optimizers)
    weights = learner.network.state_dict()["score.weight"]
    learner.iterate()
    assert all(before[k].state and before[k] is not learner._optimizers[k] for k in (0, 1))
    assert not any(each.state for each in learner._optimizers)
    assert learner.network.state_dict()["score.weight"] is not None and weights.abs().sum() > 0


def test_only_choices_better_than_the_policy_are_cloned_offline(make, monkeypatch):
    seen, update = [], offline.update_crr
    monkeypatch.setattr(offline, "update_crr", lambda *parts: seen.append(update(*parts)) or seen[-1])
    make().iterate()
    assert len(seen) == 100
    assert 0 < np.mean([losses.cloned for losses in seen]) < 0.9


@pytest.mark.parametrize("encoder", ["shared", "separate"])
def test_critics_read_with_the_actors_encoder_where_it_is_shared(make, encoder):
    learner = make(f"network.encoder={encoder}", preset="green-paper")
    own = learner.network.policy[0]
    readers = {id(critic.policy[0]) for critic in learner._critics.networks}
    assert readers == {id(own)} if encoder == "shared" else id(own) not in readers
    assert all(critic.policy[0] is not own for critic in learner._critics.targets)
    before = {name: value.clone() for name, value in own.state_dict().items()}
    learner._optimizers[0].param_groups[0]["lr"] = 0.0  # the policy's own updates change nothing
    learner._learn_offline()
    moved = any(not torch.equal(value, before[name]) for name, value in own.state_dict().items())
    assert moved == (encoder == "shared")


def test_only_images_have_an_encoder_to_share():
    with pytest.raises(ConfigError, match=r"network.encoder is shared: that needs network.kind=image, and it is jobs"):
        NetworkConfig(encoder="shared")


@pytest.mark.parametrize(
    ("kind", "preset"), [(BcLearner, "green-bc"), (CrrLearner, "green-crr"), (SacLearner, "green-offline-online")]
)
def test_updates_in_half_precision_are_nearly_those_in_single_precision(make, kind, preset):
    rows = []
    for precision in ((), (HALF,)):
        learner = make(*precision, preset=preset, kind=kind)
        rows.append([learner.iterate()["policy_loss"] for _ in range(2)])
        assert all(value.dtype == torch.float32 for value in learner.weights().values())
    assert rows[0] != rows[1]
    assert rows[1] == pytest.approx(rows[0], rel=0.1)


@pytest.mark.parametrize("preset", ["green-bc", "green-crr", "green-sac"])
def test_a_gpu_that_is_not_there_is_refused(make, preset):
    if torch.cuda.is_available():
        pytest.skip("there is one here")
    kind = {"green-bc": BcLearner, "green-crr": CrrLearner, "green-sac": SacLearner}[preset]
    with pytest.raises(ConfigError, match=r"learn.device is cuda, but torch finds no GPU here"):
        make("learn.device=cuda", preset=preset, kind=kind)


def test_the_papers_preset_is_what_the_paper_has():
    config = load_config("green-paper")
    assert isinstance(config.learn, SacConfig)
    assert (config.network.encoder, config.learn.offline, config.learn.steps) == ("shared", 50_000, 1_000_000)
    assert config.learn.epsilon_at(0) == 0
    assert (config.network.kind, config.env.observation, config.env.violation_cost) == ("image", "image", 0)
    assert (config.learn.updates, config.learn.buffer, config.learn.discount) == (1, 200_000, 0.99)
    alone = msgspec.structs.replace(config.learn, offline=0)
    assert [alone.epsilon_at(step) for step in (0, 200_000, 1_000_000)] == pytest.approx([0.99, 0.1, 0.1])


def test_updates_in_parts_of_any_number_are_those_of_one_training(make):
    one, part, rest = (make(f"learn.steps={n}", preset="green-bc", kind=BcLearner) for n in (6, 3, 6))
    one.iterate()
    part.iterate()
    rest.restore(part.state())
    assert (part.finished, rest.steps, rest.finished) == (True, 3, False)
    rest.iterate()
    assert rest.finished
    assert all(torch.equal(value, one.weights()[name]) for name, value in rest.weights().items())


def test_a_state_of_when_the_shared_encoder_moved_with_the_policy_too_is_refused_in_one_line(world, root, tmp_path):
    changes = (
        "learn.offline=0",
        "learn.steps=128",
        "learn.envs=2",
        "learn.warmup=64",
        "learn.batch=8",
        "learn.threads=1",
    )
    config = load_config("green-paper", ["learn.buffer=200", "network.hidden=[2, 2]", "learn.updates=0.05", *changes])
    workload = load_workload(root / "workloads" / "green.json")
    inputs = TrainingInputs(equal_hosts(10), workload, FILES)
    train_scheduler(inputs, config, tmp_path)
    path = tmp_path / STATE
    state = load(str(path), zlib.decompress(path.read_bytes()))
    learner = state["learner"]
    of_policy = [torch.nn.Parameter(value) for value in learner["network"].values()]
    assert len(of_policy) > len(learner["optimizers"][0]["param_groups"][0]["params"]), "now without the encoder"
    learner["optimizers"][0] = torch.optim.Adam(of_policy).state_dict()
    path.write_bytes(zlib.compress(dump(state)))
    more = msgspec.structs.replace(config, learn=msgspec.structs.replace(config.learn, steps=256))
    with pytest.raises(ConfigError, match=r"holds a run that an earlier version began.*learn into another folder$"):
        train_scheduler(inputs, more, tmp_path, resume=True)
