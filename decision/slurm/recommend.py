"""Lines of slurm.conf to change, as a unified diff of the operator's own file."""

import difflib
import re
from collections.abc import Mapping
from pathlib import Path

from .conf import Conf, read_text
from .parameters import IN_SCHEDULER_PARAMETERS, PARAMETERS
from .sweep import Sweep, Tried


def changed_text(text: str, conf: Conf, changes: Mapping[str, str], remark: str) -> str:
    """The text of a slurm.conf with other values; comments and order stay.

    Args:
        text: the file.
        conf: what is read from it.
        changes: by parameter; those of the model itself are left out.
        remark: a comment above each changed line.
    """
    lines = text.splitlines(keepends=True)
    options = {n: v for n, v in changes.items() if PARAMETERS[n.lower()].name in IN_SCHEDULER_PARAMETERS}
    keys = {n: v for n, v in changes.items() if n not in options and PARAMETERS[n.lower()].name in _KEYS}
    if options:
        _set_key(lines, "SchedulerParameters", _with_options(conf, options), remark)
    for name, value in keys.items():
        restart = "; needs a restart of slurmctld" if PARAMETERS[name.lower()].restart else ""
        _set_key(lines, PARAMETERS[name.lower()].name, value, remark + restart)
    return "".join(lines)


_KEYS = {each.name for each in PARAMETERS.values() if each.name[0].isupper()}


def _with_options(conf: Conf, options: Mapping[str, str]) -> str:
    """SchedulerParameters with other values, in their order; new ones at the end."""
    low = {name.lower(): (PARAMETERS[name.lower()].name, value) for name, value in options.items()}
    parts = []
    for part in conf.get("SchedulerParameters").split(","):
        name = part.partition("=")[0].strip().lower()
        if name in low:
            part = _option(*low.pop(name))
        if part.strip():
            parts.append(part.strip())
    parts += [text for name, value in low.values() if (text := _option(name, value))]
    return ",".join(parts)


def _option(name: str, value: str) -> str:
    """An option as it is written: a flag stands alone, and one that is off is left out."""
    if PARAMETERS[name.lower()].default == "no":
        return name if value.lower() in ("yes", "true", "1") else ""
    return f"{name}={value}"


def _set_key(lines: list[str], key: str, value: str, remark: str) -> None:
    """Replace the last line of a key, with all lines that continue it; or add one at the end."""
    pattern = re.compile(rf"^\s*{key}\s*=", re.IGNORECASE)
    found = [number for number, line in enumerate(lines) if pattern.match(line)]
    new = [f"# {remark}\n", f"{key}={value}\n"]
    if not found:
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += "\n"
        lines += new
        return
    first = last = found[-1]
    while lines[last].rstrip().endswith("\\") and last + 1 < len(lines):
        last += 1
    comment = re.search(r"(?<!\\)#.*", lines[last])
    if comment:
        new[1] = f"{key}={value} {comment[0].rstrip()}\n"
    lines[first : last + 1] = new


def remark_of(found: Sweep, tried: Tried, command: str) -> str:
    """What is known of a setting, in one line."""
    low, high = tried.interval
    names = ", ".join(f"{name}={value}" for name, value in tried.set.items())
    return f"{names}: {found.goal.text} {tried.mean:+.4g} [{low:+.4g}, {high:+.4g}] of {found.base:.4g}; {command}"


def conf_diff(folder: Path, conf: Conf, found: Sweep, command: str) -> str:
    """The unified diff of a case's slurm.conf that sets the best setting; empty where none is better."""
    if found.best is None:
        return ""
    path = folder / "slurm.conf"
    text = read_text(path)
    new = changed_text(text, conf, found.best.set, remark_of(found, found.best, command))
    before, after = text.splitlines(keepends=True), new.splitlines(keepends=True)
    return "".join(map(_marked, difflib.unified_diff(before, after, "slurm.conf", "slurm.conf")))


def _marked(line: str) -> str:
    """A line of a diff; the last one of a file may have no end."""
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
