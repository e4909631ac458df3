"""What can be read once, or is packed, is read as a file is, everywhere; what cannot be read says what it is."""

import bz2
import gzip
import importlib.util
import io
import lzma
import os
import subprocess
import sys
import tarfile
import threading
import zipfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from decision.files import load_platform, load_workload
from decision.files.accounting.read import recognise
from decision.files.events import load_events
from decision.files.text import file_facts, read_blocks, read_bytes
from decision.model.computer import find_platform, find_workload
from decision.model.errors import InputError

TOY = find_workload("toy").read_bytes()
HOSTS = find_platform("toy").read_bytes()
EVENTS = b'{"timestamp": 1, "type": "machine_unavailable", "resources": "0"}\n'
LINES = b"".join(b"%d\n" % n for n in range(100_000))  # more than a pipe holds


@contextmanager
def shell_pipe(content):
    """The path of a pipe that somebody writes to, as a shell's ``<(...)``."""
    there, here = os.pipe()

    def write():
        with os.fdopen(here, "wb") as file:
            file.write(content)

    writer = threading.Thread(target=write)
    writer.start()
    yield Path(f"/dev/fd/{there}")
    os.close(there)
    writer.join()


@contextmanager
def named_pipe(content, folder):
    path = folder / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(content,))
    writer.start()
    yield path
    writer.join()


READERS = {
    "workload": (lambda path: len(load_workload(path, "w0").jobs), TOY, 5),
    "platform": (lambda path: len(load_platform(path).hosts), HOSTS, 4),
    "events": (lambda path: len(load_events(path)), EVENTS, 1),
    "bytes": (read_bytes, LINES, LINES),
    "blocks": (lambda path: b"".join(read_blocks(path, 1 << 20)), LINES, LINES),
    "twice": (lambda path: (recognise(path), file_facts(path).sha256, read_bytes(path))[2], TOY, TOY),
}


@pytest.mark.parametrize("what", READERS)
def test_pipes_are_read_as_files_are(what, tmp_path):
    read, content, found = READERS[what]
    with shell_pipe(content) as path:
        assert read(path) == found
    with named_pipe(content, tmp_path) as path:
        assert read(path) == found


def test_standard_input_is_read_under_its_names(tmp_path):
    for name in ("-", "/dev/stdin"):
        command = [sys.executable, "-m", "decision", "workload", "describe", name, "--json"]
        run = subprocess.run(command, input=TOY, capture_output=True, cwd=tmp_path, timeout=60)
        assert run.returncode == 0 and b'"jobs": 5' in run.stdout, run.stderr


def _tar(mode, *names):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as tar:
        for name in names:
            facts = tarfile.TarInfo(name)
            facts.size = len(TOY)
            tar.addfile(facts, io.BytesIO(TOY))
    return file.getvalue()


def _zip(*names):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name in names:
            zipped.writestr(name, TOY)
    return file.getvalue()


ONE = {
    "log.json.gz": gzip.compress(TOY),
    "log.json.bz2": bz2.compress(TOY),
    "log.json.xz": lzma.compress(TOY),
    "log.tar": _tar("w", "logs/log.json"),
    "log.tar.gz": _tar("w:gz", "log.json"),
    "log.tar.xz": _tar("w:xz", "log.json"),
    "log.zip": _zip("log.json"),
}


@pytest.mark.parametrize("name", ONE)
def test_what_is_packed_is_read(name, tmp_path):
    (tmp_path / name).write_bytes(ONE[name])
    assert len(load_workload(tmp_path / name, "w0").jobs) == 5
    assert read_bytes(tmp_path / name) == TOY


def test_platforms_and_events_may_be_packed_too(tmp_path):
    (tmp_path / "cluster.xml.gz").write_bytes(gzip.compress(HOSTS))
    (tmp_path / "events.txt.xz").write_bytes(lzma.compress(EVENTS))
    assert len(load_platform(tmp_path / "cluster.xml.gz").hosts) == 4
    assert len(load_events(tmp_path / "events.txt.xz")) == 1


FIRST = "unpack it first, and give one of them"
NO_ZIP = "this zip archive cannot be read (File is not a zip file); unpack it yourself"
REFUSED = {
    "two.tar.gz": (_tar("w:gz", "a", "b"), f"a tar archive with 2 files (a, b); {FIRST}: tar -xf two.tar.gz"),
    "two.zip": (_zip("a", "b"), f"a zip archive with 2 files (a, b); {FIRST}: unzip two.zip"),
    "none.zip": (_zip(), f"a zip archive with no file; {FIRST}: unzip none.zip"),
    "log.7z": (b"7z\xbc\xaf\x27\x1c" + bytes(40), "compressed with 7z; unpack it first: 7z x log.7z"),
    "log.rar": (b"Rar!\x1a\x07\x00", "compressed with rar; unpack it first: unrar x log.rar"),
    "cut.gz": (gzip.compress(TOY)[:60], "damaged, or not compressed with gzip; copy it again"),
    "cut.zip": (_zip("log.json")[:60], f"{NO_ZIP}: unzip cut.zip"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_unpacked_says_what_it_is(name, tmp_path):
    content, said = REFUSED[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as error:
        load_workload(tmp_path / name, "w0")
    assert str(error.value) == f"{tmp_path / name}: {said}"


def test_zstd_is_read_where_a_library_can(tmp_path):
    file = tmp_path / "log.json.zst"
    if importlib.util.find_spec("compression") is not None:
        from compression import zstd

        file.write_bytes(zstd.compress(TOY))
    elif importlib.util.find_spec("zstandard") is not None:
        import zstandard

        file.write_bytes(zstandard.compress(TOY))
    else:
        file.write_bytes(b"\x28\xb5\x2f\xfd" + bytes(20))
        with pytest.raises(InputError, match=r"unpack it first: unzstd log\.json\.zst \(or pip install zstandard\)"):
            load_workload(file, "w0")
        return
    assert len(load_workload(file, "w0").jobs) == 5
    file.write_bytes(file.read_bytes()[:40])
    with pytest.raises(InputError):
        read_bytes(file)
