"""Checkpoints: what is written is read, the same bytes for the same content, and damage is named."""

import json
import subprocess
import sys
import tracemalloc
import zipfile

import msgspec
import numpy as np
import pytest

from decision.files.text import InputFacts, file_facts
from decision.model.errors import ConfigError, InputError
from decision.rl.learning.checkpoint import (
    Manifest,
    parametric_policy,
    read_checkpoint,
    read_manifest,
    write_checkpoint,
)
from decision.rl.learning.config import TrainConfig
from decision.rl.schedulers import read_encoder
from decision.rl.schedulers.learned import AGE, SHORT_GUARD, Learned

NONE = InputFacts(name="p.xml", sha256="0" * 64)
MANIFEST = Manifest(
    decision="0.1.0",
    algorithm="ppo",
    config=TrainConfig(),
    encoder={"name": "dbf", "version": 1},
    nb_hosts=256,
    platform=NONE,
    workloads=(NONE,),
    steps=7,
    scores={"waiting_time": 12.5},
)


def test_what_is_written_is_read(tmp_path):
    write_checkpoint(tmp_path / "a.ckpt", MANIFEST, b"weights")
    assert read_checkpoint(tmp_path / "a.ckpt") == (MANIFEST, b"weights")
    assert read_manifest(tmp_path / "a.ckpt") == MANIFEST


def test_the_same_content_gives_the_same_bytes(tmp_path):
    for name in ("a.ckpt", "b.ckpt"):
        write_checkpoint(tmp_path / name, MANIFEST, b"weights")
    assert (tmp_path / "a.ckpt").read_bytes() == (tmp_path / "b.ckpt").read_bytes()


def test_showing_a_checkpoint_needs_no_torch(tmp_path):
    write_checkpoint(tmp_path / "a.ckpt", MANIFEST, b"weights")
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from decision.cli.app import app; app(['report', 'show', sys.argv[1]], standalone_mode=False)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "a.ckpt")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "7 of 2,000,000 steps" in done.stdout
    assert "256 hosts" in done.stdout


def _zip(path, **parts):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name.replace("_", "."), content)


def test_what_is_no_checkpoint_is_refused(tmp_path):
    path = tmp_path / "x.ckpt"
    with pytest.raises(InputError, match="cannot be read"):
        read_manifest(path)
    path.write_bytes(b"PK nonsense")
    with pytest.raises(InputError, match="not a checkpoint of decision"):
        read_manifest(path)
    _zip(path, manifest_json=b"{}")
    with pytest.raises(InputError, match="not a checkpoint of decision"):
        read_manifest(path)


def test_damage_is_named(tmp_path):
    path = tmp_path / "x.ckpt"
    write_checkpoint(path, MANIFEST, b"weights" * 100)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="the file is damaged: copy it again, or train again"):
        read_manifest(path)
    _zip(path, manifest_json=b"{", weights_pt=b"")
    with pytest.raises(InputError, match="damaged"):
        read_manifest(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"\xff\xfe", "manifest.json: "),
        (b"[" * 100_000, "manifest.json: "),
        (b'{"a":' * 100_000, "manifest.json: maximum recursion depth"),
        (bytes(2 << 20), "2,097,152 bytes unpacked, at most 1,048,576 are read"),
        (b'{"format": "\\u001b[31m\\n"}', "has format  "),
    ],
)
def test_a_hostile_manifest_is_refused_in_one_line(text, message, tmp_path):
    path = tmp_path / "x.ckpt"
    _zip(path, manifest_json=text, weights_pt=b"")
    with pytest.raises(InputError, match=message) as caught:
        read_manifest(path)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("nb_hosts",), "x", "nb_hosts: Expected `int`, got `str`; found 'x'"),
        (("steps",), -1, "steps: Expected `int` >= 0; found -1"),
        (("config", "network", "hidden", 0), 10**6, r"config\.network\.hidden\[0\]: .* <= 8192; found 1000000"),
        (("workloads", 0, "name"), "a\n\x1b[31m", r"workloads\[0\]\.name: "),
        (("config", "env"), 7, "config: env: must be a table of settings, found int"),
        (("config", "env"), [[]], "config: env: must be a table of settings, found list"),
    ],
)
def test_a_wrong_field_is_named_with_what_it_has(place, value, message, tmp_path):
    path, manifest = tmp_path / "x.ckpt", msgspec.json.decode(msgspec.json.encode(MANIFEST))
    *outer, last = place
    tree = manifest
    for key in outer:
        tree = tree[key]
    tree[last] = value
    _zip(path, manifest_json=msgspec.json.encode(manifest), weights_pt=b"")
    with pytest.raises(InputError, match=f"x.ckpt: manifest.json: {message}.*copy it again, or train again") as caught:
        read_manifest(path)
    assert str(caught.value).isprintable()


def test_no_more_is_unpacked_than_a_member_says_that_it_is(tmp_path):
    path = tmp_path / "x.ckpt"
    write_checkpoint(path, MANIFEST, bytes(100 << 20))
    data = bytearray(path.read_bytes())
    entry = data.rindex(b"PK\x01\x02")
    data[entry + 24 : entry + 28] = (10).to_bytes(4, "little")  # instead of 100 MiB
    path.write_bytes(data)
    tracemalloc.start()
    with pytest.raises(InputError, match="the file is damaged"):
        read_checkpoint(path)
    assert tracemalloc.get_traced_memory()[1] < 10 << 20
    tracemalloc.stop()


def test_weights_that_could_not_be_read_again_are_not_written(tmp_path):
    with pytest.raises(ConfigError, match="choose a smaller network"):
        write_checkpoint(tmp_path / "x.ckpt", MANIFEST, bytes((256 << 20) + 1))
    assert not list(tmp_path.iterdir())


def test_another_format_is_refused_naming_both(tmp_path):
    path = tmp_path / "x.ckpt"
    newer = msgspec.json.encode(msgspec.structs.replace(MANIFEST, format=9, decision="3.0"))
    _zip(path, manifest_json=newer, weights_pt=b"")
    with pytest.raises(InputError, match=r"format 9, made by decision 3\.0; this decision reads formats 1 to 3"):
        read_manifest(path)


EXPECTED = {"estimate": "walltime", "correction": "walltime"}  # settings that there were not in format 1
FORMER = {  # sections that every config had in format 1
    "env": {"head": 9, "tail": 1, "cluster": "cores", "base": "f1", "jobs": 128, "online": False}
    | {"idle_weight": 0.5, "queue_weight": 0.25, "waiting_weight": 0.25},
    "network": {"kind": "mlp", "hidden": [32]},
    "learn": {"steps": 5000, "lr": 0.5},
    "evolve": {"steps": 7000, "population": 8, "slowdown_first": 2.0},
}


@pytest.mark.parametrize(
    ("scheduler", "settings", "steps"),
    [
        ("inspector", {**EXPECTED, "base": "f1", "jobs": 128, "online": False}, 5000),
        ("rlscheduler", {**EXPECTED, "head": 9, "jobs": 128, "online": False}, 5000),
        ("ranking", {"jobs": 128, "slowdown_first": 2.0, "slowdown_last": 0.85}, 7000),
    ],
)
def test_a_checkpoint_of_format_1_is_read_in_the_present_form(scheduler, settings, steps, tmp_path):
    encoder = {"name": scheduler, "version": 1, "cores": 0, "cluster": 0, "head": 9, "tail": 0, "base": "f1"}
    written = json.loads(msgspec.json.encode(MANIFEST))
    written |= {"format": 1, "encoder": encoder, "config": {"scheduler": scheduler, "seed": 3, **FORMER}}
    _zip(tmp_path / "x.ckpt", manifest_json=json.dumps(written).encode(), weights_pt=b"")
    manifest = read_manifest(tmp_path / "x.ckpt")
    config = manifest.config
    assert (config.scheduler, config.settings, config.steps, config.seed) == (scheduler, settings, steps, 3)
    assert (config.network is None) == (scheduler == "ranking")
    if scheduler != "ranking":
        assert read_encoder(manifest.encoder | {"max_runtime": 1.0, "max_wait": 1.0}).name == scheduler
    write_checkpoint(tmp_path / "again.ckpt", manifest, b"")
    assert read_manifest(tmp_path / "again.ckpt") == manifest


@pytest.mark.parametrize("version", [1, 2])
def test_a_checkpoint_of_dbf_up_to_format_2_is_the_papers(version, tmp_path):
    written = json.loads(msgspec.json.encode(MANIFEST)) | {"format": version}
    del written["config"]["env"]["paper"]
    _zip(tmp_path / "x.ckpt", manifest_json=json.dumps(written).encode(), weights_pt=b"")
    assert read_manifest(tmp_path / "x.ckpt").config.env.paper
    written["format"] = 3
    _zip(tmp_path / "x.ckpt", manifest_json=json.dumps(written).encode(), weights_pt=b"")
    assert not read_manifest(tmp_path / "x.ckpt").config.env.paper


def test_facts_of_a_file_are_its_name_and_hash_and_not_its_folder(tmp_path):
    (tmp_path / "log.swf").write_bytes(b"abc")
    facts = file_facts(tmp_path / "log.swf")
    assert facts.name == "log.swf"
    assert facts.sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_numbers_that_an_older_checkpoint_lacks_count_as_0(tmp_path):
    pytest.importorskip("torch")
    from decision.rl.learning.weights import dump_numbers

    scheduler, weights = Learned(), np.arange(1.0, Learned.weights[0])
    manifest = msgspec.structs.replace(MANIFEST, encoder=dict(scheduler.sees))
    policy = parametric_policy(tmp_path, manifest, scheduler, dump_numbers(weights))
    assert policy.weights[SHORT_GUARD] == 0.0
    assert policy.weights[AGE] == weights[AGE]
    with pytest.raises(InputError, match="there are 15 numbers, and learned has 17"):
        parametric_policy(tmp_path, manifest, scheduler, dump_numbers(weights[:-1]))
