"""The platforms and workloads that the package ships, found by name.

Design
------
The files are those of the repository's folders ``platforms/`` and ``workloads/``. ``decision/data`` links to both, so
that one path holds everywhere: a checkout and an editable install read the folders themselves, a wheel holds copies.
Rejected: a mapping of packages to folders in the build, which is not there before an installation; a build step that
copies, whose copies grow old.
"""

import os
from pathlib import Path

from decision.computer.unpacked import STDIN, is_packed, unpacked
from decision.model.errors import ConfigError, InputError
from decision.model.names import nearest

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
        found = f"an object of type {type(source).__name__}"
        raise ConfigError(f"{kind}: give a file or a shipped {kind}'s name, not {found}", field=kind)
    return Path(source)


def _files(kind: str) -> dict[str, Path]:
    """Files by name."""
    return {file.stem: file for file in (_DATA / f"{kind}s").glob("*.*")}
