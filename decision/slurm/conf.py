"""slurm.conf: its lines, keys, nodes and partitions as they stand, and the parameters that the model takes from it.

Keys are kept with the file and line that they come from, so that an error can name the place and a recommendation can
change one word of one line.
"""

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from decision.files.text import read_bytes
from decision.model.errors import ConfigError, InputError
from decision.model.hosts import nearest

from .text import is_nothing, read_hosts, read_minutes
from .versions import DEFAULTS, FIRST, VERSION_RULES, Version, read_version, version_text

# slurm.conf(5): "Key=Value" in any case, several on a line, values with blanks in quotes
_PAIR = re.compile(r'([\w/:.-]+)\s*=\s*("[^"]*"|\S*)')
_OTHER_TABLES = ("frontendname", "switchname")
_DEEPEST = 10  # Includes in Includes


class ConfLine(msgspec.Struct, frozen=True):
    """A logical line: comments are gone, continued lines are joined."""

    text: str
    path: str
    number: int  # of its first line

    @property
    def place(self) -> str:
        """Where it is, for an error."""
        return f"{self.path}, line {self.number}"


class ConfEntry(msgspec.Struct, frozen=True):
    """A line of several pairs: ``NodeName=n[1-4] CPUs=8``, with what DEFAULT lines said before."""

    name: str  # of the node or partition, or the list of them
    pairs: Mapping[str, str]  # keys in lower case
    line: ConfLine


class Conf(msgspec.Struct, frozen=True):
    """What a slurm.conf and the files that it includes say."""

    path: str
    keys: Mapping[str, str]  # of single keys, in lower case; the last one counts
    places: Mapping[str, ConfLine]  # the line of each of them
    nodes: tuple[ConfEntry, ...]
    partitions: tuple[ConfEntry, ...]
    files: tuple[str, ...]  # all that were read
    sets: tuple[ConfEntry, ...] = ()  # NodeSet
    down: tuple[ConfEntry, ...] = ()  # DownNodes
    unused: tuple[ConfLine, ...] = ()  # whole lines of other tables, of which nothing is used
    version: Version = FIRST  # of Slurm
    taken: Mapping[str, str] = {}  # what slurmctld took for keys that are left out, in lower case

    def get(self, key: str, default: str = "") -> str:
        """The value of a key, whatever its case; where it is left out, what slurmctld took."""
        low = key.lower()
        return self.keys[low] if low in self.keys else self.taken.get(low, default)

    @property
    def options(self) -> dict[str, str]:
        """SchedulerParameters by name in lower case; those without value are "yes"."""
        parts = (part.strip().partition("=") for part in self.get("SchedulerParameters").split(",") if part.strip())
        # the same since 23.02, in a key of its own
        youngest = "youngest_first" in self.get("PreemptParameters").lower()
        found = {"preempt_youngest_first": "yes"} if youngest else {}
        return found | {name.lower(): value or "yes" for name, _, value in parts}


def read_conf(path: Path) -> Conf:
    """Read a slurm.conf and all that it includes.

    Raises:
        InputError: naming file and line.
    """
    keys: dict[str, str] = {}
    places: dict[str, ConfLine] = {}
    tables: dict[str, list[ConfEntry]] = {name: [] for name in ("nodename", "partitionname", "nodeset", "downnodes")}
    unused: list[ConfLine] = []
    defaults: dict[str, dict[str, str]] = {}
    files: list[str] = []
    # the last line of a key counts, as for slurmctld
    for line in _lines(path, files, 0):
        pairs = pairs_of(line)
        key, value = pairs[0]
        if key in tables and value.upper() == "DEFAULT":
            # slurm.conf(5), NodeName=DEFAULT: holds for lines behind it, until another one
            defaults.setdefault(key, {}).update(pairs[1:])
            continue
        if key in tables:
            try:
                read_hosts(value)
            except ValueError:
                raise InputError(
                    f"{line.place}: {value!r} is not a list of names; write it as n[1-16] or n1,n2"
                ) from None
            tables[key].append(ConfEntry(value, {**defaults.get(key, {}), **dict(pairs[1:])}, line))
            continue
        if key in _OTHER_TABLES:
            unused.append(line)
            continue
        for key, value in pairs:
            keys[key], places[key] = value, line
    if not keys and not any(tables.values()):
        raise InputError(f"{path}: nothing of a slurm.conf is in it; is it the right file?")
    return Conf(
        path=str(path),
        keys=keys,
        places=places,
        nodes=tuple(tables["nodename"]),
        partitions=tuple(tables["partitionname"]),
        files=tuple(files),
        sets=tuple(tables["nodeset"]),
        down=tuple(tables["downnodes"]),
        unused=tuple(unused),
    )


def _lines(path: Path, files: list[str], depth: int) -> Iterator[ConfLine]:
    if depth > _DEEPEST:
        raise InputError(f"{path}: included by itself, or more than {_DEEPEST} files deep; remove an Include")
    files.append(str(path))
    for line in logical_lines(path):
        word, *rest = line.text.split(None, 1)
        if word.lower() != "include" or not rest:
            yield line
            continue
        target = Path(rest[0].strip('"'))
        # Include of the cluster's own path: files that were copied are next to each other
        found = target if target.is_absolute() and target.exists() else path.parent / target
        if not found.is_file():
            found = path.parent / target.name
        if not found.is_file():
            raise InputError(f"{line.place}: the included file {target} is missing; put it next to {path.name}")
        yield from _lines(found, files, depth + 1)


def logical_lines(path: Path) -> Iterator[ConfLine]:
    """The lines that say something, with continued ones joined. Raises InputError."""
    begun, text = 0, ""
    for number, raw in enumerate(read_text(path).splitlines(), 1):
        # slurm.conf(5): "#" begins a comment unless a backslash is before it, a backslash at the end continues the line
        part = re.sub(r"(?<!\\)#.*", "", raw).replace("\\#", "#").rstrip()
        begun = begun or number
        if part.endswith("\\"):
            text += part[:-1]
            continue
        text = re.sub(r",\s+", ",", text + part).strip()
        if text:
            yield ConfLine(text, str(path), begun)
        begun, text = 0, ""
    if text.strip():
        raise InputError(f"{path}, line {begun}: continued with \\ at the end of the file; is it complete?")


_TAKEN = re.compile(r"([\w/]+)\s*=\s(.*)")
_UNITS = re.compile(r"(\d+) (?:sec|min|usec|percent)$")
_HEADING = "Configuration data as of"  # the first line of scontrol show config


def read_taken(path: Path) -> tuple[Version, dict[str, str]]:
    """What ``scontrol show config`` prints: the version, and the value of each key, in lower case, as it was taken.

    Raises:
        InputError: if it is something else, or has no version.
    """
    taken: dict[str, str] = {}
    for line in read_text(path).splitlines():
        found = _TAKEN.match(line)
        if found and not is_nothing(found[2]):
            taken[found[1].lower()] = _UNITS.sub(r"\1", found[2].strip())
    version = taken.pop("slurm_version", "")
    try:
        return read_version(version), taken
    except ConfigError:
        raise InputError(
            f"{path}: there is no line SLURM_VERSION in it; make it with: scontrol show config > {path.name}"
        ) from None


def read_text(path: Path) -> str:
    """A text file. Raises InputError."""
    data = read_bytes(path)
    if not data.strip():
        raise InputError(f"{path}: the file is empty")
    if b"\0" in data:
        raise InputError(f"{path}, line {data[: data.index(0)].count(10) + 1}: a zero byte; is it a text file?")
    return data.decode("utf-8-sig", errors="replace")


def pairs_of(line: ConfLine) -> list[tuple[str, str]]:
    """The pairs of a line, keys in lower case. Raises InputError if there are none, or something is between them."""
    pairs = [(key.lower(), value.strip('"')) for key, value in _PAIR.findall(line.text)]
    rest = _PAIR.sub("", line.text).strip()
    if line.text.startswith(_HEADING):
        raise InputError(
            f"{line.place}: this is what scontrol show config prints; give it beside slurm.conf, not in its place"
        )
    if not pairs or rest:
        found = rest or line.text
        raise InputError(f"{line.place}: {found[:60]!r} is not Key=Value; is it a file of Slurm's?")
    return pairs


# The parameters that the model takes from slurm.conf, and their values in one simulation.
#
# Defaults are those of slurm.conf(5); where they changed, those before (`versions.DEFAULTS` has the others).


class Parameter(NamedTuple):
    """A parameter that the model uses."""

    name: str
    default: str  # Slurm's
    unit: str
    summary: str
    restart: bool = False  # whether a change needs a restart of slurmctld


_SCHEDULER = (
    Parameter("assoc_limit_stop", "no", "", "a job that a limit holds stops its partition"),
    Parameter("batch_sched_delay", "3", "s", "from what asks for a main loop to the loop"),
    Parameter("bf_busy_nodes", "no", "", "shared nodes: prefer nodes in use when a start is planned"),
    Parameter("bf_continue", "no", "", "a cycle of backfill goes on after it let others in"),
    Parameter("bf_interval", "30", "s", "from the end of a cycle of backfill to the next one"),
    Parameter("bf_job_part_count_reserve", "0", "jobs", "of a partition that get a reservation; 0 for all"),
    Parameter("bf_licenses", "no", "", "licences are planned as nodes are"),
    Parameter("bf_max_job_array_resv", "20", "jobs", "tasks of an array that get a reservation"),
    Parameter("bf_max_job_assoc", "0", "jobs", "of an association tested in a cycle; 0 for all"),
    Parameter("bf_max_job_part", "0", "jobs", "of a partition tested in a cycle; 0 for all"),
    Parameter("bf_max_job_start", "0", "jobs", "started in a cycle; 0 for all"),
    Parameter("bf_max_job_test", "500", "jobs", "tested in a cycle"),
    Parameter("bf_max_job_user", "0", "jobs", "of a user tested in a cycle; 0 for all"),
    Parameter("bf_max_job_user_part", "0", "jobs", "of a user in a partition tested in a cycle; 0 for all"),
    Parameter("bf_max_time", "bf_interval", "s", "that a cycle may take, with test_cost"),
    Parameter("bf_min_age_reserve", "0", "s", "waited before a job gets a reservation"),
    Parameter("bf_min_prio_reserve", "0", "", "priority from which a job gets a reservation"),
    Parameter("bf_node_space_size", "bf_max_job_test", "", "records of a cycle's table; a reservation uses up to two"),
    Parameter("bf_one_resv_per_job", "no", "", "a job of several partitions gets one reservation"),
    Parameter("bf_resolution", "60", "s", "of the times of reservations"),
    Parameter("bf_running_job_reserve", "no", "", "exclusive jobs that run stand in a cycle's table, too"),
    Parameter("bf_window", "1440", "min", "from now to the last reservation"),
    Parameter("bf_window_linear", "0", "s", "shared nodes: by which the window of ends grows; 0 doubles it"),
    Parameter("bf_yield_interval", "2000000", "us", "after which a cycle lets others in, with test_cost"),
    Parameter("bf_yield_sleep", "500000", "us", "for which it lets them in"),
    Parameter("defer_batch", "no", "", "as defer, where nodes come back"),
    Parameter("default_queue_depth", "100", "jobs", "looked at by a main loop that something asked for"),
    Parameter("defer", "no", "", "a job's end asks for a main loop instead of running one"),
    Parameter("max_switch_wait", "300", "s", "for which a job with --switches waits at most for as few switches"),
    Parameter("partition_job_depth", "0", "jobs", "of a partition looked at by a main loop; 0 for all"),
    Parameter("preempt_youngest_first", "no", "", "of the jobs that may give way, the youngest first"),
    Parameter("sched_interval", "60", "s", "from one main loop over the whole queue to the next"),
    Parameter("sched_max_job_start", "0", "jobs", "started by a main loop; 0 for all"),
)
_PRIORITY = (
    Parameter("PriorityCalcPeriod", "5", "min", "from one calculation of all priorities to the next"),
    Parameter("PriorityDecayHalfLife", "7-0", "", "in which usage counts half; 0 for never"),
    Parameter("PriorityFavorSmall", "NO", "", "small jobs get the larger factor of size"),
    Parameter("PriorityFlags", "", "", "FAIR_TREE, NO_FAIR_TREE, SMALL_RELATIVE_TO_TIME, ..."),
    Parameter("PriorityMaxAge", "7-0", "", "age that counts in full"),
    Parameter("PriorityWeightAge", "0", "", "weight of a job's age"),
    Parameter("PriorityWeightAssoc", "0", "", "weight of the association's priority"),
    Parameter("PriorityWeightFairshare", "0", "", "weight of the user's fair share"),
    Parameter("PriorityWeightJobSize", "0", "", "weight of a job's size"),
    Parameter("PriorityWeightPartition", "0", "", "weight of PriorityJobFactor"),
    Parameter("PriorityWeightQOS", "0", "", "weight of the QOS's priority"),
    Parameter("PriorityWeightTRES", "", "", "weights of resources asked for: CPU=1000,Mem=2000"),
    Parameter("FairShareDampeningFactor", "1", "", "of classic fair-share"),
)
_PLUGINS = (
    Parameter("SchedulerType", "sched/backfill", "", "sched/backfill or sched/builtin", True),
    Parameter("SelectType", "select/linear", "", "select/linear or select/cons_tres", True),
    Parameter("SelectTypeParameters", "CR_Core_Memory", "", "which resources jobs share a node by", True),
    Parameter("PriorityType", "priority/basic", "", "priority/basic or priority/multifactor", True),
    Parameter("PreemptType", "preempt/none", "", "preempt/none, preempt/partition_prio or preempt/qos", True),
    Parameter("PreemptMode", "OFF", "", "REQUEUE, CANCEL or OFF; SUSPEND and GANG are not simulated"),
    Parameter("PreemptExemptTime", "-1", "", "for which a job runs before it may be preempted; -1 for none"),
    Parameter("KillWait", "30", "s", "for which, with MessageTimeout, a job that preempted others preempts no more"),
    Parameter("MessageTimeout", "10", "s", "see KillWait"),
    Parameter("CompleteWait", "0", "s", "for which nothing is started while a job completes"),
    Parameter("TopologyPlugin", "topology/none", "", "topology/none or topology/tree, with its topology.conf", True),
    Parameter("TopologyParam", "", "", "TopoOptional: switches count only for jobs with --switches", True),
)
# What slurm.conf does not say and a simulation needs; names are ours. sdiag has hints at the costs.
MODEL = (
    Parameter("slurm_version", "22.05", "", "whose rules and defaults hold; a case knows its own"),
    Parameter("completing", "2", "s", "from a job's end until its nodes are free again: epilog and messages"),
    Parameter("test_cost", "0", "s", "that backfill takes to test a job"),
    Parameter("cycle_cost", "0", "s", "that a cycle of backfill takes by itself"),
    Parameter("bf_phase", "0", "s", "from the begin to the first cycle of backfill"),
    Parameter("calc_phase", "0", "s", "from the begin to the first calculation of priorities"),
    Parameter("requeue_order", "0", "", "of jobs that are preempted together: 0 by number, others at random"),
    Parameter("main_phase", "0", "s", "from the begin to the first main loop over the whole queue"),
)
PARAMETERS: Mapping[str, Parameter] = {each.name.lower(): each for each in (*_SCHEDULER, *_PRIORITY, *_PLUGINS, *MODEL)}
NO_NORMAL = {"NO_NORMAL_ASSOC", "NO_NORMAL_PART", "NO_NORMAL_QOS", "NO_NORMAL_TRES"}  # flags: NO_NORMAL_ALL
IN_SCHEDULER_PARAMETERS = frozenset(each.name for each in _SCHEDULER)
_ALIASES = {"bf_window_scale": "bf_window_linear"}  # as Slurm's source calls it
_MODEL_NAMES = frozenset(each.name for each in MODEL)


_MOST = 1e12  # of a parameter


class Settings(msgspec.Struct, frozen=True):
    """The parameters of one simulation: slurm.conf's, and what replaces them."""

    conf: Conf
    changed: Mapping[str, str] = {}  # by name as in `PARAMETERS`, in lower case

    def text(self, name: str) -> str:
        """The value of a parameter as it is written."""
        low = name.lower()
        if low in self.changed:
            return self.changed[low]
        if low == "slurm_version":
            return version_text(self.version)
        if name in _MODEL_NAMES:
            return PARAMETERS[low].default
        if name in IN_SCHEDULER_PARAMETERS:
            options = self.conf.options
            return options.get(low, PARAMETERS[low].default)
        return self.conf.get(name, self.default(low))

    @property
    def version(self) -> Version:
        """The version of Slurm whose rules hold. Raises ConfigError."""
        changed = self.changed.get("slurm_version")
        return self.conf.version if changed is None else read_version(changed)

    def default(self, low: str) -> str:
        """What a key, in lower case, is where slurm.conf leaves it out."""
        since, value = DEFAULTS.get(low, (FIRST, PARAMETERS[low].default))
        return value if self.version >= since else PARAMETERS[low].default

    def number(self, name: str) -> float:
        """The value of a parameter that is a number. Raises ConfigError."""
        text = self.text(name)
        try:
            value = float(text)
        except ValueError:
            raise ConfigError(f"{self.place(name)}: {name}={text} is not a number") from None
        if not abs(value) <= _MOST:
            raise ConfigError(f"{self.place(name)}: {name}={text} is beyond {_MOST:g}; check it")
        return value

    def whole(self, name: str) -> int:
        """The value of a parameter that is a whole number. Raises ConfigError."""
        return int(self.number(name))

    def flag(self, name: str) -> bool:
        """Whether a parameter is switched on."""
        return self.text(name).lower() in ("yes", "true", "1")

    def seconds(self, name: str) -> float:
        """The seconds of a parameter that Slurm writes in minutes or as ``days-hours``. Raises ConfigError."""
        text = self.text(name)
        try:
            return read_minutes(text)
        except ValueError:
            raise ConfigError(f"{self.place(name)}: {name}={text} is not a time like 5, 30:00 or 7-0") from None

    def place(self, name: str) -> str:
        """Where a parameter was set."""
        key = "schedulerparameters" if name in IN_SCHEDULER_PARAMETERS else name.lower()
        if name.lower() in self.changed or key not in self.conf.places:
            return "policy slurm"
        return self.conf.places[key].place

    def changing(self, more: Mapping[str, str]) -> "Settings":
        """The same with further changes. Raises ConfigError for a parameter that there is not."""
        return Settings(self.conf, {**self.changed, **checked(more)})

    @property
    def bf_max_time(self) -> float:
        """Seconds that a cycle of backfill may take."""
        text = self.text("bf_max_time")
        return self.number("bf_interval") if text == "bf_interval" else self.number("bf_max_time")

    @property
    def table_size(self) -> int:
        """Records that the table of a cycle of backfill has."""
        text = self.text("bf_node_space_size")
        return max(2, self.whole("bf_max_job_test" if text == "bf_max_job_test" else "bf_node_space_size"))

    @property
    def calc_period(self) -> int:
        """Seconds between calculations of priorities."""
        return max(1, int(min(self.seconds("PriorityCalcPeriod"), _MOST)))

    @property
    def priority_flags(self) -> set[str]:
        """The words of PriorityFlags, in capitals."""
        found = {word.strip() for word in self.text("PriorityFlags").upper().split(",")} - {""}
        return found | (NO_NORMAL if "NO_NORMAL_ALL" in found else set())

    @property
    def exempt_time(self) -> float:
        """Seconds for which a job runs before it may be preempted."""
        seconds = self.seconds("PreemptExemptTime")
        return seconds if math.isfinite(seconds) else 0.0

    @property
    def has_database(self) -> bool:
        """Whether slurmdbd keeps accounts: without it nothing ages and nobody has a fair share."""
        # measured on 22.05.8
        return "slurmdbd" in self.conf.get("AccountingStorageType").lower()

    @property
    def enforces_limits(self) -> bool:
        """Whether limits of associations and QOS count."""
        enforced = self.conf.get("AccountingStorageEnforce").lower()
        return any(word in enforced for word in ("limits", "safe", "all", "qos"))

    @property
    def linear(self) -> bool:
        """Whether jobs get whole nodes."""
        return "linear" in self.text("SelectType").lower()

    @property
    def multifactor(self) -> bool:
        """Whether priorities are computed (priority/multifactor), and not only the order of submission."""
        return "multifactor" in self.text("PriorityType").lower()

    @property
    def requeues_in_any_order(self) -> bool:
        """Whether jobs that are preempted together come back in an order that nobody knows, and that decides."""
        preempts = "none" not in self.text("PreemptType").lower()
        return preempts and not self.multifactor and self.version >= VERSION_RULES["requeued_anew"].since

    @property
    def builtin(self) -> bool:
        """Whether there is no backfill."""
        return "builtin" in self.text("SchedulerType").lower()


def checked(changes: Mapping[str, str]) -> dict[str, str]:
    """Changes by name in lower case.

    Raises:
        ConfigError: naming a parameter that there is not, and the nearest that there is.
    """
    changes = {_ALIASES.get(name.lower(), name): value for name, value in changes.items()}
    for name in changes:
        if name.lower() not in PARAMETERS:
            known = [each.name for each in PARAMETERS.values()]
            hint = nearest(name, known)
            raise ConfigError(f"slurm has no parameter {name!r}{hint} (decision policies slurm lists them)")
    return {name.lower(): str(value) for name, value in changes.items()}
