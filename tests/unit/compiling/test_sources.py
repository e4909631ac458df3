"""Stamps of sources."""

import os
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from decision.compiling import sources


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The source of a module that is loaded."""
    loaded = ModuleType("somebodys")
    loaded.__file__ = str(tmp_path / "somebodys.py")
    monkeypatch.setitem(sys.modules, "somebodys", loaded)
    source = tmp_path / "somebodys.py"
    source.write_text("x = 1\n")
    return source


def _stamp(folder: Path) -> str:
    """As a new process has it."""
    sources._kept.cache_clear()
    sources._state.cache_clear()
    return sources.stamp("somebodys", "1", folder)


def test_what_was_read_is_read_again_only_when_it_changes(module, tmp_path, monkeypatch):
    """By as many letters and under the old time, too: a file cannot be given an older time of its last change."""
    monkeypatch.setattr(sources, "_TICK", 0)
    first = _stamp(tmp_path)
    monkeypatch.setattr(sources, "_source", None)  # nothing is read
    assert _stamp(tmp_path) == first
    monkeypatch.undo()
    time.sleep(0.02)  # a tick of the file system's clock
    then = module.stat()
    module.write_text("x = 2\n")
    os.utime(module, ns=(then.st_atime_ns, then.st_mtime_ns))
    monkeypatch.setitem(sys.modules, "somebodys", ModuleType("somebodys"))
    sys.modules["somebodys"].__file__ = str(module)
    assert _stamp(tmp_path) != first


def test_what_has_just_changed_or_is_torn_is_not_believed(module, tmp_path):
    first = _stamp(tmp_path)
    (kept,) = (tmp_path / "sources").rglob("sources.json")
    assert kept.read_text() == "{}"
    for torn in ("{", "[]", '{"a": [1]}'):
        kept.write_text(torn)
        assert _stamp(tmp_path) == first


def test_a_stamp_holds_what_is_imported_and_what_compiles(tmp_path):
    stamps = {sources.stamp(f"decision.compiling.{name}", "1", tmp_path) for name in ("jit", "entry", "small_kernels")}
    assert len(stamps) == 3
    assert sources.stamp("decision.compiling.jit", "2", tmp_path) not in stamps
    jit, whole_program = (sources._file_of(f"decision.compiling.{name}") for name in ("jit", "whole_program"))
    assert whole_program in sources._kept(tmp_path)[jit].imports
