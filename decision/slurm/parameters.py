"""The parameters that the model takes from slurm.conf, and their values in one simulation.

Defaults are those of Slurm 22.05's own documentation (slurm.conf(5), sched_config).
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from decision.model.errors import ConfigError
from decision.model.names import nearest

from .conf import Conf
from .text import read_minutes


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
    Parameter("CompleteWait", "0", "s", "for which nothing is started while a job completes"),
    Parameter("TopologyPlugin", "topology/none", "", "topology/none or topology/tree, with its topology.conf", True),
    Parameter("TopologyParam", "", "", "TopoOptional: switches count only for jobs with --switches", True),
)
MODEL = (
    Parameter("completing", "2", "s", "from a job's end until its nodes are free again: epilog and messages"),
    Parameter("test_cost", "0", "s", "that backfill takes to test a job"),
    Parameter("cycle_cost", "0", "s", "that a cycle of backfill takes by itself"),
    Parameter("bf_phase", "0", "s", "from the begin to the first cycle of backfill"),
    Parameter("calc_phase", "0", "s", "from the begin to the first calculation of priorities"),
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
        if name in _MODEL_NAMES:
            return PARAMETERS[low].default
        if name in IN_SCHEDULER_PARAMETERS:
            options = self.conf.options
            return options.get(low, PARAMETERS[low].default)
        return self.conf.get(name, PARAMETERS[low].default)

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
        """Whether priorities are computed."""
        return "multifactor" in self.text("PriorityType").lower()

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
