"""Logs of the Parallel Workloads Archive, fetched by name, checked and kept."""

import hashlib
import os
import shutil
import urllib.error
import urllib.request
from pathlib import Path
from typing import BinaryIO, cast

from decision.files.accounting.known import KNOWN_LOGS, KnownLog
from decision.files.text import write_files
from decision.model.computer import unpacked
from decision.model.errors import ConfigError, InputError
from decision.model.hosts import nearest

_SECONDS = 60.0  # without an answer
_ENDINGS = (".swf.gz", ".swf")


def find_log(name: str) -> KnownLog:
    """The log of this name. Raises ConfigError if none is known."""
    known = KNOWN_LOGS.get(name.removesuffix(".gz").removesuffix(".swf"))
    if known is None:
        raise ConfigError(f"{name}: no such log is known{nearest(name, KNOWN_LOGS)}")
    return known


def fetch_log(name: str, source: str | None = None, target: Path | None = None) -> Path:
    """Fetch a log, unpack it and check its SHA-256.

    Args:
        name: one of `KNOWN_LOGS`.
        source: a folder or a URL where NAME.swf.gz or NAME.swf is; the archive if None.
        target: the file to write; by default one in the user's cache, where a log that is there already is kept.

    Raises:
        ConfigError: if the name is unknown or a file cannot be written.
        InputError: if the log cannot be fetched, or is another one; then nothing is left behind.
    """
    log = find_log(name)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    kept = cache / "decision" / "logs" / f"{log.name}.swf"
    target = target or kept
    if source is None and kept.is_file() and _digest(kept) == log.sha256:
        content, where = kept.read_bytes(), str(kept)
    else:
        content, where = _content(log, source)
    found = hashlib.sha256(content).hexdigest()
    if found != log.sha256:
        raise InputError(f"{where}: SHA-256 {found}, but that of {log.name} is {log.sha256}: another file; not kept")
    write_files({path: [content] for path in {target, kept} if path != Path(where)})
    return target


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _content(log: KnownLog, source: str | None) -> tuple[bytes, str]:
    """The unpacked log, and where it was."""
    import tempfile

    if source is not None and "://" not in source:
        files = [Path(source) / f"{log.name}{ending}" for ending in _ENDINGS]
        path = next((file for file in files if file.is_file()), None)
        if path is None:
            raise InputError(f"{source}: there is neither {files[0].name} nor {files[1].name}")
        return _unpacked(path), str(path)
    urls = [log.url] if source is None else [f"{source.rstrip('/')}/{log.name}{ending}" for ending in _ENDINGS]
    with tempfile.TemporaryDirectory(prefix="decision-") as folder:
        for url in urls:
            path = Path(folder) / url.rpartition("/")[2]
            reason = _download(url, path)
            if not reason:
                return _unpacked(path), url
    raise InputError(f"{urls[-1]}: cannot be fetched ({reason}); give a copy's folder or URL", field="source")


def _unpacked(path: Path) -> bytes:
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return (unpacked(path) if packed else path).read_bytes()


def _download(url: str, path: Path) -> str:
    """Fetch a file; why it failed, or ""."""
    try:
        with urllib.request.urlopen(url, timeout=_SECONDS) as answer, path.open("wb") as file:
            shutil.copyfileobj(cast(BinaryIO, answer), file)
    except (urllib.error.URLError, OSError, ValueError) as error:
        return str(getattr(error, "reason", error))
    return ""
