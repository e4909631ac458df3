"""Which trainings differ in their seed alone."""

from msgspec.structs import replace

from decision.files.text import InputFacts
from decision.rl.learning.checkpoint import Manifest, kind_of, write_checkpoint
from decision.rl.learning.config import load_config

LOG = InputFacts(name="log.swf", sha256="0" * 64)


def training(folder, *changes: str, seed: int = 0, steps: int = 100, workload: InputFacts = LOG):
    folder.mkdir()
    manifest = Manifest(
        decision="0.1.0",
        algorithm="ppo",
        config=replace(load_config("dbf-compact", changes), seed=seed),
        encoder={"name": "dbf", "version": 1},
        nb_hosts=256,
        platform=LOG,
        workloads=(workload,),
        steps=steps,
        scores={"waiting_time": float(seed)},
    )
    write_checkpoint(folder / "dbf.ckpt", manifest, b"weights")
    return folder


def test_seeds_and_progress_make_no_other_kind(tmp_path):
    one = kind_of(training(tmp_path / "a"))
    assert one is not None
    assert kind_of(training(tmp_path / "b", seed=1, steps=200)) == one


def test_settings_and_inputs_do(tmp_path):
    other = replace(LOG, sha256="1" * 64)
    kinds = {
        kind_of(training(tmp_path / "a")),
        kind_of(training(tmp_path / "b", "learn.lr=1e-5")),
        kind_of(training(tmp_path / "c", workload=other)),
    }
    assert len(kinds) == 3


def test_where_no_checkpoint_or_no_single_one_can_be_read_the_kind_is_unknown(tmp_path):
    assert kind_of(tmp_path) is None
    (tmp_path / "x.ckpt").write_bytes(b"PK")
    assert kind_of(tmp_path) is None
    folder = training(tmp_path / "two")
    (folder / "best.ckpt").write_bytes((folder / "dbf.ckpt").read_bytes())
    assert kind_of(folder) is None
