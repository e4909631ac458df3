"""Lines of slurm.conf to change, as a unified diff of the operator's own file."""

import difflib
import re
from collections.abc import Mapping
from pathlib import Path

from .conf import Conf, read_text
from .measured_change import Tried
from .order import Approximation
from .parameters import IN_SCHEDULER_PARAMETERS, MODEL, PARAMETERS, Parameter
from .sweep import Sweep

_WEIGHTS = ("Age", "Assoc", "Fairshare", "JobSize", "Partition", "QOS", "TRES")


def changed_text(text: str, conf: Conf, changes: Mapping[str, str], remark: str) -> str:
    """The text of a slurm.conf with other values; comments and order stay.

    Args:
        text: the file.
        conf: what is read from it.
        changes: by parameter; those of the model itself are left out.
        remark: a comment above each changed line.
    """
    lines = text.splitlines(keepends=True)
    known = {name.lower(): PARAMETERS[name.lower()] for name in changes if name.lower() in PARAMETERS}
    options = {n: v for n, v in changes.items() if n.lower() in known and _is_option(known[n.lower()])}
    if options:
        _set_key(lines, "SchedulerParameters", _with_options(conf, options), remark)
    for name, value in changes.items():
        parameter = known.get(name.lower())
        if name in options or (parameter is not None and parameter in MODEL):
            continue
        needs_restart = parameter is None or parameter.restart
        restart = "; needs a restart of slurmctld" if needs_restart else ""
        _set_key(lines, parameter.name if parameter else name, value, remark + restart)
    return "".join(lines)


def _is_option(parameter: Parameter) -> bool:
    return parameter.name in IN_SCHEDULER_PARAMETERS


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
    return _diff(folder, conf, found.best.set, remark_of(found, found.best, command))


def diff_of(folder: Path, conf: Conf, found: Approximation, command: str) -> str:
    """The unified diff of a case's slurm.conf that sets another order; empty where nothing expresses it."""
    if found.chosen is None:
        return ""
    low, high = found.chosen.interval
    says = f"mean-wait {found.chosen.mean:+.4g} [{low:+.4g}, {high:+.4g}] of {found.base:.4g}; {command}"
    if not found.script:
        return _diff(folder, conf, found.weights, f"order {found.order}: {says}")
    names = [f"PriorityWeight{each}" for each in _WEIGHTS if conf.get(f"PriorityWeight{each}", "0") not in ("", "0")]
    weights = {name: "" if name.endswith("TRES") else "0" for name in names}
    changes = {"PriorityType": "priority/multifactor", "JobSubmitPlugins": "lua", **weights}
    return _diff(folder, conf, changes, f"order {found.order} with job_submit.lua: {says}")


def _diff(folder: Path, conf: Conf, changes: Mapping[str, str], remark: str) -> str:
    text = read_text(folder / "slurm.conf")
    new = changed_text(text, conf, changes, remark)
    before, after = text.splitlines(keepends=True), new.splitlines(keepends=True)
    return "".join(map(_marked, difflib.unified_diff(before, after, "slurm.conf", "slurm.conf")))


def _marked(line: str) -> str:
    """A line of a diff; the last one of a file may have no end."""
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
