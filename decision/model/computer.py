"""What the computer has for a run: cores and memory, and the files that users name, compressed or shipped ones, too."""

import atexit
import bz2
import ctypes
import functools
import gzip
import lzma
import math
import mmap
import os
import shutil
import stat
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

from .errors import ConfigError, InputError
from .hosts import nearest

if TYPE_CHECKING:
    from numpy.typing import NDArray

_GROUPS = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
_WORKER = 400e6  # bytes that a process takes in which policies run


def available_cores() -> int:
    """Cores that this process may use: those of its affinity, and no more than its control group's quota."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([cores, *(math.ceil(quota) for quota in _quotas())]))


def available_workers() -> int:
    """Processes that work at a time: one for each core, as far as memory goes."""
    room = available_memory() / _WORKER
    return max(1, available_cores() if room >= available_cores() else int(room))


def available_memory() -> float:
    """Bytes that this process may still take without swapping; inf where the system does not say."""
    room = [math.inf, *_rooms()]
    with suppress(OSError, StopIteration, ValueError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        room.append(1024.0 * int(next(line.split()[1] for line in lines if line.startswith("MemAvailable:"))))
    with suppress(ImportError, OSError, ValueError):
        from resource import RLIM_INFINITY, RLIMIT_AS, getrlimit

        limit, _ = getrlimit(RLIMIT_AS)
        if limit != RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            room.append(float(limit - pages * os.sysconf("SC_PAGE_SIZE")))
    return max(0.0, min(room))


def keep_freed_memory() -> None:
    """Let this process keep what it frees for what it takes next, up to some hundred megabytes, where glibc is its C
    library: else it gives large arrays back at once, and each new one is pages that the kernel fills with zeros first.
    """
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_THRESHOLD, 32 << 20)  # the most that it takes
        mallopt(_TRIM_THRESHOLD, 512 << 20)


def return_freed_memory() -> None:
    """Give the memory between what is in use back to the system, where glibc manages it.

    Of ten million lines that were read in parts, it keeps half a gigabyte that no later array of the run fits into.
    """
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


def forget_rows(column: "NDArray[Any]", first: int, last: int) -> None:
    """Give the memory of the rows ``first <= t < last`` of an array (n,) back to the system, where that can be done.

    What stands in them is not known from then on, unless it is that of a file.
    """
    if (drop := getattr(mmap, "MADV_DONTNEED", None)) is not None:
        page, at, step = mmap.PAGESIZE, column.ctypes.data, column.strides[0]
        begin, end = -(-(at + first * step) // page) * page, (at + last * step) // page * page
        if end > begin:
            ctypes.CDLL(None).madvise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), drop)


def _quotas() -> Iterator[float]:
    """Cores that each control group grants, of version 2 and 1; none where there is no limit."""
    for group in _groups(""):
        with suppress(OSError, ValueError):  # "max" where there is no limit
            quota, period = (group / "cpu.max").read_text().split()
            yield int(quota) / int(period)
    for group in _groups("cpu"):
        with suppress(OSError, ValueError):
            limit = int((group / "cpu.cfs_quota_us").read_text())
            if limit > 0:
                yield limit / int((group / "cpu.cfs_period_us").read_text())


def _rooms() -> Iterator[float]:
    """Bytes that each control group still grants; the system takes back files that it keeps in memory."""
    for name, limit, usage, inactive in (
        ("", "memory.max", "memory.current", "inactive_file"),
        ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        for group in _groups(name):
            with suppress(OSError, ValueError):
                free = int((group / limit).read_text()) - int((group / usage).read_text())
                lines = [line.split() for line in (group / "memory.stat").read_text().splitlines()]
                yield float(free + sum(int(value) for key, value in lines if key == inactive))


def _groups(controller: str) -> Iterator[Path]:
    """The folders of this process's control group and of those above it; "" for version 2."""
    with suppress(OSError, ValueError):
        for line in _OWN.read_text().splitlines():
            _, controllers, group = line.split(":", 2)
            if controller not in controllers.split(",") or (not controller and controllers):
                continue
            top = next((place for place in (_GROUPS / controllers, _GROUPS / controller) if place.is_dir()), _GROUPS)
            inside = Path(group.lstrip("/"))
            yield from dict.fromkeys([top / inside, *(top / folder for folder in inside.parents), top])


def check_memory(name: str, count: int, size: float) -> None:
    """Refuse so many things of `size` bytes each where they do not fit into memory.

    Args:
        name: of the things, in the plural.
        count: how many.
        size: bytes that one takes at least.

    Raises:
        ConfigError: saying how many would fit.
    """
    room = available_memory()
    if count * size > room:
        need = f"{count:,} {name} need {count * size / 2**30:,.1f} GiB of memory, and {room / 2**30:,.1f} GiB are free"
        raise ConfigError(f"{need}: at most {int(room / size):,} fit")


# Inputs that are no plain files, compressed ones, pipes and standard input (``-``), made into files.
#
# Everything above reads files, some of them several times or in other processes. So such an input becomes one, in a
# folder that is removed when the process ends. Which compression it is, the first bytes say. An archive with one file
# in it is read as that file; one with several is refused, since nobody knows which is meant.

STDIN = "-"
_STDINS = ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
_BEGIN = 512  # bytes that say what a file is; a tar archive's first header
_NAMED = 5  # files of an archive in a message


class _Kind(NamedTuple):
    """A way of packing: how it is opened, or the command that unpacks it."""

    name: str
    ending: str
    opened: Callable[[Any], Any] | None
    command: str


def _open_zstd(file: Any) -> Any:
    try:
        from compression import zstd  # type: ignore[import-not-found]  # of Python 3.14

        return zstd.open(file)
    except ImportError:
        import zstandard  # type: ignore[import-not-found]

        return _Frames(file, zstandard.ZstdDecompressor().decompressobj)


class _Frames:
    """The frames of a file in zstd, as the package zstandard unpacks them; its own reader takes half a frame for whole.

    Args:
        file: packed.
        frame: makes what unpacks a frame.
    """

    def __init__(self, file: Any, frame: Callable[[], Any]) -> None:
        self._file, self._frame = file, frame
        self._open = frame()
        self._begun = False  # the present frame

    def read(self, size: int) -> bytes:
        """Some bytes, not more than a frame's; b"" at the end. Raises EOFError if that is within a frame."""
        while True:
            packed = (self._open.unused_data if self._open.eof else b"") or self._file.read(size)
            if not packed:
                if self._begun and not self._open.eof:
                    raise EOFError
                return b""
            if self._open.eof:
                self._open = self._frame()
            self._begun = True
            if content := self._open.decompress(packed):
                return cast(bytes, content)


_PLAIN = _Kind("", "", lambda file: file, "")
_PACKED = {
    b"\x1f\x8b": _Kind("gzip", ".gz", gzip.open, "gunzip"),
    b"BZh": _Kind("bzip2", ".bz2", bz2.open, "bunzip2"),
    b"\xfd7zXZ": _Kind("xz", ".xz", lzma.open, "unxz"),
    b"\x28\xb5\x2f\xfd": _Kind("zstd", ".zst", _open_zstd, "unzstd"),
    b"7z\xbc\xaf\x27\x1c": _Kind("7z", ".7z", None, "7z x"),
    b"Rar!": _Kind("rar", ".rar", None, "unrar x"),
    b"\x1f\x9d": _Kind("compress", ".Z", None, "uncompress"),
    b"\x04\x22\x4d\x18": _Kind("lz4", ".lz4", None, "unlz4"),
}
_ZIPPED = (b"PK\x03\x04", b"PK\x05\x06")
_TAR = slice(257, 262), b"ustar"
_DAMAGED = (gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)


def is_packed(path: Path) -> bool:
    """Whether a file must become another one before it can be read: compressed, an archive, or a pipe.

    Of a file that cannot be read its name's ending says so.
    """
    if is_pipe(path):
        return True
    try:
        with path.open("rb") as file:
            begin = file.read(_BEGIN)
    except OSError:
        return any(path.name.lower().endswith(kind.ending.lower()) for kind in _PACKED.values())
    return _kind(begin) is not _PLAIN or _is_archive(begin)


def is_pipe(path: Path) -> bool:
    """Whether a file can be read once, from its beginning on: a pipe, as a shell's ``<(...)`` is, or a terminal."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or (stat.S_ISCHR(mode) and str(path) in _STDINS)


def as_plain_file(path: str | os.PathLike[str]) -> Path:
    """The file itself, or what `unpacked` makes of it where it is packed. Raises InputError."""
    path = Path(path)
    return unpacked(path) if is_packed(path) else path


def _kind(begin: bytes) -> _Kind:
    return next((kind for magic, kind in _PACKED.items() if begin.startswith(magic)), _PLAIN)


def _is_archive(begin: bytes) -> bool:
    return begin[_TAR[0]] == _TAR[1] or begin.startswith(_ZIPPED)


_given: dict[Path, str] = {}  # what users gave, by the file that it became


def as_given(text: str) -> str:
    """A text for people with what they gave in the place of the files that it became."""
    for path, given in _given.items():
        text = text.replace(str(path), given)
    return text


def unpacked(path: Path) -> Path:
    """The file with the content of a compressed file, of a pipe or of standard input; unpacked once in a process.

    Args:
        path: a compressed file, an archive with one file in it, a pipe, or ``-``.

    Raises:
        InputError: if it cannot be read, is damaged, or has several files in it.
    """
    if str(path) == STDIN:
        return _unpacked(path, ())
    try:
        facts = path.stat()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path") from None
    changed = () if is_pipe(path) else (facts.st_mtime_ns, facts.st_size)
    return _unpacked(path, (facts.st_dev, facts.st_ino, *changed))


@functools.cache
def _unpacked(path: Path, _which: tuple[int, ...]) -> Path:
    """`_which` tells a file from another one that had the same path, as pipes have."""
    if str(path) == STDIN:
        source = cast(BufferedReader, sys.stdin.buffer)
        return _unpack(Path("stdin"), source, "standard input")
    try:
        with path.open("rb") as packed:
            return _unpack(path, packed, str(path))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path") from None


def _unpack(path: Path, source: BufferedReader, label: str) -> Path:
    kind = _kind(source.peek(_BEGIN)[:_BEGIN])
    by_hand = f"unpack it first: {kind.command} {path.name}"
    if kind.opened is None:
        raise InputError(f"{label}: compressed with {kind.name}; {by_hand}")
    try:
        content = cast(BinaryIO, kind.opened(source))
    except ImportError:
        how = f"{by_hand} (or pip install zstandard)"
        raise InputError(f"{label}: compressed with zstd, which this Python cannot read; {how}") from None
    name = path.name[: -len(kind.ending)] if kind.ending and path.name.endswith(kind.ending) else path.name
    file = _write(name, content, label, kind.name)
    with file.open("rb") as begun:
        begin = begun.read(_BEGIN)
    return _only_file(file, begin, label, path.name) if _is_archive(begin) else file


def _only_file(archive: Path, begin: bytes, label: str, name: str) -> Path:
    """The one file of a tar or zip archive. Raises InputError if it is damaged, or there are others."""
    import tarfile  # seldom needed

    is_zip = begin.startswith(_ZIPPED)
    kind, command = ("zip", "unzip") if is_zip else ("tar", "tar -xf")
    try:
        if is_zip:
            with zipfile.ZipFile(archive) as zipped:
                names = [entry.filename for entry in zipped.infolist() if not entry.is_dir()]
                if len(names) == 1:
                    with zipped.open(names[0]) as file:
                        return _write(Path(names[0]).name, cast(BinaryIO, file), label, kind)
        else:
            with tarfile.open(archive) as tar:
                members = [entry for entry in tar if entry.isfile()]
                names = [entry.name for entry in members]
                if len(names) == 1:
                    return _write(Path(names[0]).name, cast(BinaryIO, tar.extractfile(members[0])), label, kind)
    except (*_DAMAGED, tarfile.TarError, RuntimeError, NotImplementedError) as error:
        # a RuntimeError asks for a password, NotImplementedError is another method's
        advice = f"unpack it yourself: {command} {name}"
        raise InputError(f"{label}: this {kind} archive cannot be read ({error}); {advice}") from None
    some = ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
    holds = f"{len(names):,} files ({some})" if names else "no file"
    raise InputError(f"{label}: a {kind} archive with {holds}; unpack it first, and give one of them: {command} {name}")


def _write(name: str, source: BinaryIO, label: str, kind: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="decision-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / name
    _given[path] = label
    damaged = InputError(f"{label}: damaged, or not compressed with {kind}; copy it again")
    try:
        with path.open("wb") as file:
            shutil.copyfileobj(source, file)
    except _DAMAGED:
        raise damaged from None
    except OSError as error:
        if error.errno is None:  # what bz2 raises
            raise damaged from None
        raise InputError(f"{label}: cannot be written to {path} ({error.strerror}); free space") from None
    except Exception as error:
        if type(error).__name__ == "ZstdError":  # of one of two libraries
            raise damaged from None
        raise
    return path


# The platforms and workloads that the package ships, found by name.
#
# Design
# ------
# The files are those of the repository's folders ``platforms/`` and ``workloads/``. ``decision/data`` links to both, so
# that one path holds everywhere: a checkout and an editable install read the folders themselves, a wheel holds copies.
# Rejected: a mapping of packages to folders in the build, which is not there before an installation; a build step that
# copies, whose copies grow old.

_DATA = Path(__file__).parents[1] / "data"


def find_platform(source: str | os.PathLike[str]) -> Path:
    """The file of a platform: of a shipped one if `source` is its name (``taurus``), else `source` itself.

    A name has neither a folder nor an ending; a file of that name in the current folder goes first, a folder does not.
    Compressed files (gzip, bzip2, xz, zstd), archives of one file and pipes become files for as long as the process
    lives.

    Raises:
        InputError: if it is a name and no such platform is shipped.
        ConfigError: if it is neither a name nor a path.
    """
    return _find("platform", source)


def find_workload(source: str | os.PathLike[str]) -> Path:
    """The file of a workload: of a shipped one if `source` is its name (``taurus_week``); as `find_platform`.

    Standard input is ``-``.
    """
    path = _path("workload", source)
    if os.fspath(source) == STDIN:
        return unpacked(path)
    return _find("workload", source)


def shipped_platforms() -> list[str]:
    """The names of the shipped platforms.

    Examples:
        >>> import decision as d
        >>> "taurus" in d.shipped_platforms()
        True
    """
    return sorted(_files("platform"))


def shipped_workloads() -> list[str]:
    """The names of the shipped workloads.

    Examples:
        >>> import decision as d
        >>> "taurus_week" in d.shipped_workloads()
        True
    """
    return sorted(_files("workload"))


def _find(kind: str, source: str | os.PathLike[str]) -> Path:
    path = _path(kind, source)
    if is_packed(path):
        return unpacked(path)
    if path.suffix or os.sep in os.fspath(source):
        return path
    files = _files(kind)
    if path.exists() and not (path.is_dir() and path.name in files):  # a folder may well be called as a platform is
        return path
    if path.name not in files:
        hint, names = nearest(path.name, files), ", ".join(sorted(files))
        raise InputError(f"{source}: there is no such file, nor a shipped {kind} of that name{hint} (shipped: {names})")
    return files[path.name]


def _path(kind: str, source: str | os.PathLike[str]) -> Path:
    if not isinstance(source, str | os.PathLike):  # the caller's Python argument: an object, None, a number
        given = f"an object of type {type(source).__name__}"
        raise ConfigError(f"{kind}: give a file or a shipped {kind}'s name, not {given}", field=kind)
    return Path(source)


def _files(kind: str) -> dict[str, Path]:
    """The shipped files of a kind, by the name that users give."""
    return {file.stem: file for file in (_DATA / f"{kind}s").glob("*.*")}
