"""What a job asked for: the options of the command that submitted it."""

import re
import shlex
from collections.abc import Mapping

_SHORT = {
    **{"A": "account", "a": "array", "b": "begin", "c": "cpus-per-task", "C": "constraint", "d": "dependency"},
    **{"D": "chdir", "e": "error", "F": "nodefile", "G": "gpus", "i": "input", "J": "job-name", "L": "licenses"},
    **{"m": "distribution", "M": "clusters", "n": "ntasks", "N": "nodes", "o": "output", "p": "partition"},
    **{"q": "qos", "S": "core-spec", "t": "time", "w": "nodelist", "x": "exclude", "B": "extra-node-info"},
}
_SHORT_FLAGS = {"H": "hold", "O": "overcommit", "s": "oversubscribe", "k": "no-kill", "W": "wait"}
_WITH_VALUE = {
    *_SHORT.values(),
    *("mem", "mem-per-cpu", "mem-per-gpu", "gres", "gpus-per-node", "gpus-per-task", "gpus-per-socket", "uid", "gid"),
    *("ntasks-per-node", "ntasks-per-core", "ntasks-per-socket", "ntasks-per-gpu", "mincpus", "tmp", "reservation"),
    *("mail-type", "mail-user", "export", "export-file", "comment", "wckey", "deadline", "time-min", "signal"),
    *("switches", "priority", "hint", "threads-per-core", "cores-per-socket", "sockets-per-node", "wrap", "open-mode"),
    *("cpus-per-gpu", "gpu-bind", "gpu-freq", "profile", "power", "prefer", "delay-boot", "cluster-constraint"),
    *("acctg-freq", "batch", "bb", "bbf", "container", "cpu-freq", "get-user-env", "mcs-label", "thread-spec"),
}

_NOT_SIMULATED = {
    *("contiguous", "spread-job", "use-min-nodes", "time-min", "deadline", "core-spec", "thread-spec", "mincpus"),
    *("ntasks-per-core", "ntasks-per-socket", "ntasks-per-gpu", "cores-per-socket", "sockets-per-node", "tmp"),
    *("threads-per-core", "extra-node-info", "hint", "gpus-per-task", "gpus-per-socket", "cpus-per-gpu", "mem-per-gpu"),
    *("bb", "bbf", "overcommit", "oversubscribe", "prefer", "delay-boot", "batch", "cluster-constraint", "clusters"),
    *("nodefile", "reboot", "power"),
}
_KNOWN_NEEDS = re.compile(r"(afterany|afterok|afternotok|aftercorr|after):|singleton")


def unknown_options(options: Mapping[str, str]) -> set[str]:
    """Those of a job's options that may matter and are not simulated."""
    found = {f"--{name}" for name in options.keys() & _NOT_SIMULATED}
    if options.get("exclusive", "") in ("user", "mcs"):
        found.add(f"--exclusive={options['exclusive']}")
    if "-" in options.get("nodes", ""):
        found.add("--nodes=MIN-MAX")
    if "*" in options.get("constraint", ""):
        found.add("--constraint with counts")
    needs = re.split("[,?]", options.get("dependency", ""))
    return found | {f"--dependency={need.partition(':')[0]}" for need in needs if need and not _KNOWN_NEEDS.match(need)}


def read_options(line: str) -> Mapping[str, str]:
    """The options of ``sbatch ...``, ``srun ...`` or ``salloc ...`` by long name; those without value are "yes".

    What stands behind the script's name is its own.
    """
    try:
        words = shlex.split(line)[1:]
    except ValueError:  # a quote that does not end: sacct cuts long lines
        words = line.split()[1:]
    options: dict[str, str] = {}
    while words:
        word = words.pop(0)
        if not word.startswith("-") or word == "-":
            break
        name, value = _long(word, words) if word.startswith("--") else _short(word, words)
        options[name] = value
    return options


def _long(word: str, rest: list[str]) -> tuple[str, str]:
    name, equals, value = word[2:].partition("=")
    if equals:
        return name, value
    return name, rest.pop(0) if name in _WITH_VALUE and rest else "yes"


def _short(word: str, rest: list[str]) -> tuple[str, str]:
    letter, value = word[1], word[2:]
    if letter not in _SHORT:
        return _SHORT_FLAGS.get(letter, letter), "yes"
    return _SHORT[letter], value.removeprefix("=") or (rest.pop(0) if rest else "")
