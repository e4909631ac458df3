"""Checkpoints: what is written is read, the same bytes for the same content, and damage is named."""

import subprocess
import sys
import zipfile

import msgspec
import pytest

from decision.learn.checkpoint import InputFacts, Manifest, file_facts, read_checkpoint, read_manifest, write_checkpoint
from decision.learn.config import TrainConfig
from decision.model.errors import InputError

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
        "from decision.cli.app import app; app(['show', sys.argv[1]], standalone_mode=False)"
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
    with pytest.raises(InputError, match="no checkpoint of decision"):
        read_manifest(path)
    _zip(path, manifest_json=b"{}")
    with pytest.raises(InputError, match="no checkpoint of decision"):
        read_manifest(path)


def test_damage_is_named(tmp_path):
    path = tmp_path / "x.ckpt"
    write_checkpoint(path, MANIFEST, b"weights" * 100)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="no checkpoint"):
        read_manifest(path)
    _zip(path, manifest_json=b"{", weights_pt=b"")
    with pytest.raises(InputError, match="damaged"):
        read_manifest(path)


def test_another_format_is_refused_naming_both(tmp_path):
    path = tmp_path / "x.ckpt"
    newer = msgspec.json.encode(msgspec.structs.replace(MANIFEST, format=9, decision="3.0"))
    _zip(path, manifest_json=newer, weights_pt=b"")
    with pytest.raises(InputError, match=r"format 9, made by decision 3\.0; this decision reads format 1"):
        read_manifest(path)


def test_facts_of_a_file_are_its_name_and_hash_and_not_its_folder(tmp_path):
    (tmp_path / "log.swf").write_bytes(b"abc")
    facts = file_facts(tmp_path / "log.swf")
    assert facts.name == "log.swf"
    assert facts.sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
