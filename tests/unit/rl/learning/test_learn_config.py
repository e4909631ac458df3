"""Configs: presets, files and changes, and mistakes in them named."""

import pytest

from decision.model.errors import ConfigError, InputError
from decision.rl.learning.config import TrainConfig, changed_settings, load_config, preset_names
from decision.rl.schedulers import records


def test_every_preset_can_be_read():
    assert set(preset_names()) >= {"dbf-paper", "dbf-compact", *(s.default_preset for s in records().values())}
    for name in preset_names():
        assert isinstance(load_config(name), TrainConfig)


def test_every_scheduler_has_a_preset_of_its_own_and_settings_that_there_are():
    for name, scheduler in records().items():
        config = load_config(scheduler.default_preset)
        assert config.scheduler == name
        assert config.network.kind == scheduler.networks[0] if scheduler.networks else config.sections == ("learn",)
        assert set(config.settings) == set(scheduler.Settings.__struct_fields__)


def test_the_presets_of_the_baselines_say_what_their_papers_say():
    picks, inspects = load_config("rlscheduler"), load_config("inspector")
    expected = {"estimate": "walltime", "correction": "walltime"}
    assert picks.settings == {**expected, "head": 128, "jobs": 256, "online": False}
    assert inspects.settings == {**expected, "base": "sjf", "jobs": 128, "online": False}
    for config in (picks, inspects):
        assert (config.network.hidden, config.learn.clip, config.learn.discount) == ((32, 16, 8), 0.2, 1.0)


def test_the_papers_preset_says_what_the_paper_says():
    config = load_config("dbf-paper")
    assert config.network.kind == "mlp"
    assert config.network.hidden == (1024, 512, 256)
    learn = config.learn
    assert (learn.lr, learn.clip, learn.discount, learn.minibatch) == (3e-4, 0.2, 0.99, 128)
    assert (config.env.idle_weight, config.env.queue_weight, config.env.waiting_weight) == (1 / 3, 1 / 3, 1 / 3)
    assert (config.env.jobs, config.env.paper, config.env.mask, config.env.cluster) == (1000, True, False, "cores")
    episode = learn.envs * learn.rollout  # steps: 1,000 starts, and the ends of some 2,000 cycles
    assert (learn.envs, episode, learn.steps) == (1, 2997, 100_000 * episode)
    assert not load_config("dbf-compact").env.paper


def test_neural_annealing_learns_as_its_paper_and_its_program_say():
    config = load_config("repair-paper")
    learn, env = config.learn, config.env
    assert (config.network.kind, config.network.hidden) == ("cnn", (16, 8)), "CNN-3"
    assert (learn.lr, learn.critic_lr, learn.clip, learn.discount) == (3e-4, 1e-3, 0.2, 0.99)
    assert (learn.epochs, learn.minibatch, learn.steps) == (80, learn.envs * learn.rollout, 3_000_000)
    assert (env.pay, env.period, env.window, env.q, env.levels, env.destroyed) == ("window", 60, 2, 100, 3, 0)


def test_small_networks_are_computed_by_one_thread():
    for name, threads in (("dbf-compact", 1), ("rlscheduler", 1), ("inspector", 1), ("ranking", 1)):
        config = load_config(name)
        assert config.learn.torch_threads(8, config.network) == threads
    config = load_config("dbf-compact", ["learn.threads=3"])
    assert config.learn.torch_threads(8, config.network) == 3


@pytest.mark.parametrize(
    ("change", "apart", "threads"),
    [("", True, 4), ("learn.threads=2", True, 1), ("learn.threads=1", False, 1), ("learn.overlap=true", True, 2)]
    + [(f"learn.{how}", False, 8) for how in ("compile=on", "precision=bfloat16")],
)
def test_actor_and_critic_that_share_no_layer_have_half_of_the_threads_each(change, apart, threads):
    config = load_config("dbf-paper", [change] if change else [])
    assert config.learn.learns_apart(8, config.network) == apart
    assert config.learn.torch_threads(8, config.network) == threads
    shared = load_config("dbf-paper", ["network.kind=jobs", "network.hidden=[96]", *([change] if change else [])])
    assert not shared.learn.learns_apart(8, shared.network)


def test_changes_come_last_and_the_later_one_counts():
    config = load_config("dbf-compact", ["learn.lr=1e-4", "env.head=9", "env.head=10", "network.hidden=[48]"], seed=7)
    assert (config.learn.lr, config.env.head, config.network.hidden, config.seed) == (1e-4, 10, (48,), 7)


def test_a_preset_can_be_a_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("[learn]\nlr = 0.5\n")
    assert load_config(str(path)).learn.lr == 0.5


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("learn.lr", "write it as section.key=value"),
        ("lr=1", "write it as section.key=value"),
        ("learn.lrr=1", r"there is no learn.lrr; did you mean learn.lr\?"),
        ("learn.lr=fast", "learn.lr: expected `float`, got `str`"),
        ("learn.envs=0", "learn.envs: expected `int` >= 1"),
        ("learn.discount=2", "learn.discount: expected `float` <= 1"),
        ("network.kind=rnn", "network.kind: invalid enum value 'rnn'"),
        ("network.hidden=[8,8]", "the network jobs has one width"),
    ],
)
def test_a_wrong_change_is_named(change, says):
    with pytest.raises(ConfigError, match=says):
        load_config("dbf-compact", [change])


def test_a_window_needs_a_job():
    with pytest.raises(ConfigError, match=r"env\.head and env\.tail are both 0"):
        load_config("dbf-compact", ["env.head=0", "env.tail=0"])


@pytest.mark.parametrize(
    ("preset", "change", "says"),
    [
        ("rlscheduler", "env.head=0", r"env\.head is 0: the window needs a job"),
        (
            "rlscheduler",
            "env.tail=4",
            r"there is no env.tail \(rlscheduler has estimate, correction, head, jobs, online\)",
        ),
        (
            "inspector",
            "env.idle_weight=1",
            r"there is no env.idle_weight \(inspector has estimate, correction, base, jobs, online\)",
        ),
        ("dbf-compact", "env.base=f1", r"there is no env.base \(dbf has estimate, correction, head, tail, cluster"),
        ("inspector", "env.base=fcfs", "env.base: invalid enum value 'fcfs'"),
        ("inspector", "network.kind=jobs", "network.kind is jobs: inspector is learned with mlp"),
        ("dbf-compact", "network.kind=priority", "network.kind is priority: dbf is learned with jobs or mlp"),
    ],
)
def test_what_a_scheduler_does_not_have_is_refused(preset, change, says):
    with pytest.raises(ConfigError, match=says):
        load_config(preset, [change])


def test_a_misspelt_preset_is_told_the_nearest():
    with pytest.raises(ConfigError, match=r"did you mean dbf-paper\?"):
        load_config("dbf-papier")


def test_a_broken_file_is_named_with_the_place(tmp_path):
    (tmp_path / "mine.toml").write_text("[learn\n")
    (tmp_path / "typo.toml").write_text("[lern]\n")
    with pytest.raises(InputError, match=r"mine\.toml: .*line 1"):
        load_config(str(tmp_path / "mine.toml"))
    with pytest.raises(ConfigError, match="unknown field `lern`"):
        load_config(str(tmp_path / "typo.toml"))
    with pytest.raises(InputError, match=r"none\.toml: cannot be read"):
        load_config(str(tmp_path / "none.toml"))


def test_differences_name_the_key_and_both_values():
    one, other = load_config("dbf-compact"), load_config("dbf-compact", ["learn.epochs=5"])
    assert changed_settings(one, other) == [f"learn.epochs: {one.learn.epochs} and 5"]
    assert changed_settings(one, one) == []
