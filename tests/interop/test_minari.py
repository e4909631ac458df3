"""Recorded choices become a Minari data set, from which learners of other libraries learn."""

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from helpers.learning_runs import write_log

from decision.cli.app import app
from decision.files import load_platform, load_workload
from decision.files.text import file_facts
from decision.files.workload import Selection
from decision.rl.envs.demonstrations import NOTHING
from decision.rl.learning import choices
from decision.rl.learning.choices import replay_choices
from decision.rl.learning.config import load_config
from decision.rl.learning.schedulers import choosing_setup

NAME = "batsim/sjf-v0"
SMALL = ("env.jobs=40", "env.head=8", "env.tail=0")


def cli(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "160"})


def collect(folder, *more):
    changes = [word for change in SMALL for word in ("--set", change)]
    files = ("-p", folder / "p.xml", "-w", folder / "log.swf", "-o", folder / "sjf.choices")
    return cli("collect", "sjf+first-fit", "--transitions", 2000, *files, *changes, *more)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Inputs and, where Minari is installed, a data set."""
    path = tmp_path_factory.mktemp("minari")
    write_log(path / "log.swf")
    assert cli("platform", "flat", "--hosts", 8, "-o", path / "p.xml").exit_code == 0
    return path


@pytest.fixture(scope="module")
def exported(folder):
    minari = pytest.importorskip("minari", reason="needs Minari")
    pytest.importorskip("h5py", reason="needs h5py")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINARI_DATASETS_PATH", str(folder / "sets"))
        made = collect(folder, "--minari", NAME)
        assert made.exit_code == 0, made.output
        yield minari.load_dataset(NAME)


def test_a_data_set_has_what_the_network_learns_from(folder, exported):
    config = load_config("dbf-bc", SMALL)
    setup = choosing_setup(config, load_workload(folder / "log.swf", "w0"), load_platform(folder / "p.xml"))
    files = [file_facts(folder / name) for name in ("p.xml", "log.swf")]
    _, seen = replay_choices(folder / "sjf.choices", setup, files, Selection())
    (ends,) = np.nonzero(seen.action == NOTHING)
    assert len(exported) == len(ends) >= 10
    begin = 0
    for episode, end in zip(exported.iterate_episodes(), ends.tolist(), strict=True):
        np.testing.assert_array_equal(episode.observations, seen.observation[begin : end + 1])
        np.testing.assert_array_equal(episode.infos["action_mask"], seen.mask[begin : end + 1])
        np.testing.assert_array_equal(episode.actions, seen.action[begin:end])
        np.testing.assert_array_equal(episode.rewards, seen.reward[begin:end])
        np.testing.assert_array_equal(episode.terminations, seen.terminated[begin:end])
        assert episode.truncations.tolist() == [False] * (end - begin - 1) + [not seen.terminated[end - 1]]
        begin = end + 1


def test_its_environment_does_again_what_was_recorded(folder, exported):
    env, episode = exported.recover_environment(), exported[3]
    (about,) = exported.storage.get_episode_metadata([3])
    observation, _ = env.reset(options={"first": int(about["options"]["first"])})
    np.testing.assert_array_equal(observation, episode.observations[0])
    for action, seen, paid in zip(episode.actions, episode.observations[1:], episode.rewards, strict=True):
        observation, reward, *_ = env.step(action)
        np.testing.assert_array_equal(observation, seen)
        assert reward == paid


@pytest.fixture
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_d3rlpy_learns_from_it(exported, one_thread):
    d3rlpy = pytest.importorskip("d3rlpy", reason="needs d3rlpy")
    columns = ("actions", "rewards", "terminations", "truncations")
    action, *rest = (np.concatenate([getattr(episode, name) for episode in exported]) for name in columns)
    seen = np.concatenate([episode.observations[:-1] for episode in exported])  # its own reader keeps the last ones
    small = d3rlpy.models.VectorEncoderFactory([64, 64])
    learner = d3rlpy.algos.DiscreteBCConfig(batch_size=128, beta=0.0, encoder_factory=small).create(device="cpu:0")
    silent = {"show_progress": False, "save_interval": 10**9, "logger_adapter": d3rlpy.logging.NoopAdapterFactory()}
    learner.fit(d3rlpy.dataset.MDPDataset(seen, action, *rest), n_steps=500, n_steps_per_epoch=500, **silent)
    commonest = np.bincount(action).max() / len(action)
    assert np.mean(learner.predict(seen) == action) > commonest + 0.2


@pytest.mark.parametrize(
    ("name", "says"),
    [("sjf v0", "Minari names data sets GROUP/NAME-v0"), (NAME, f"Minari has a data set {NAME} already")],
)
def test_a_name_that_cannot_be_is_refused_before_anything_is_recorded(folder, exported, name, says):
    (folder / "sjf.choices").replace(folder / "kept")
    refused = collect(folder, "--minari", name)
    assert refused.exit_code == 2
    assert says in " ".join(refused.stderr.split())
    assert not (folder / "sjf.choices").exists()
    (folder / "kept").replace(folder / "sjf.choices")


def test_one_line_says_that_minari_is_missing(folder, monkeypatch):
    monkeypatch.setattr(choices, "find_spec", lambda package: None)
    refused = collect(folder, "--minari", NAME)
    assert refused.exit_code == 2
    assert refused.stderr.strip() == "error: minari is not installed: pip install 'minari[hdf5]' (--minari)"
