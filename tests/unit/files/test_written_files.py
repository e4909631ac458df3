"""Files are whole or absent, and nothing but a file is ever replaced by one."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from decision.files.text import write_files
from decision.model.errors import ConfigError


def test_all_files_are_written_or_none(tmp_path: Path) -> None:
    def fails() -> Iterator[bytes]:
        yield b"half"
        raise KeyboardInterrupt

    (tmp_path / "old").write_bytes(b"as it was")
    with pytest.raises(KeyboardInterrupt):
        write_files({tmp_path / "old": [b"new"], tmp_path / "other": fails()})
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    assert (tmp_path / "old").read_bytes() == b"as it was"


def test_a_folder_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(ConfigError, match=r"folder: cannot be written \(Is a directory\)"):
        write_files({tmp_path / "folder": [b"x"], tmp_path / "other": [b"x"]})
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_no_name_is_a_folder_too() -> None:
    with pytest.raises(ConfigError, match="Is a directory"):
        write_files({Path(): [b"x"]})


def test_a_link_stays_and_its_file_is_written(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("file")
    write_files({tmp_path / "link": [b"x"]})
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"x"
    assert len(list(tmp_path.iterdir())) == 2


def test_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_files({pipe: [b"through ", b"it"]})
    reader.join(timeout=10)
    assert read == [b"through it"]
    assert pipe.is_fifo()
