"""Jobs of a log as the model takes them: what they asked for, when, and what became of them."""

import math
from collections.abc import Mapping

import msgspec

from .text import NEVER


class Need(msgspec.Struct, frozen=True):
    """A job that another waits for."""

    kind: str  # after, afterany, afterok, afternotok, aftercorr
    job: str  # its id, or that of its array
    delay: float = 0.0  # seconds


class SlurmJob(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job of the log. Times are seconds since 1970 on the log's clock, `NEVER` where something did not happen."""

    id: str  # JobIDRaw
    submit: int
    start: int = NEVER  # of its last run
    end: int = NEVER
    begin: int = NEVER  # not before, from --begin
    runtime: float = 0.0  # seconds of its last run
    limit: float = math.inf  # seconds
    state: str = "COMPLETED"
    first_submit: int = NEVER  # where it was requeued: of its first run
    requeues: int = 0
    user: str = ""
    account: str = ""
    partition: str = ""  # one, or some with commas
    qos: str = ""
    nodes: int = 1  # at least
    nodes_max: int = 0  # 0: as many as it takes
    cpus: int = 1
    cpus_per_task: int = 1
    tasks_per_node: int = 0  # 0: any number
    memory: float = 0.0  # megabytes per node or, if `memory_per_cpu`, per cpu; 0: as configured
    memory_per_cpu: bool = False
    gres: Mapping[str, int] = {}  # per node, or all in all if `gres_in_all`
    gres_in_all: bool = False
    exclusive: bool = False
    held: bool = False
    runs_once: bool = False  # --no-requeue
    runs_again: bool = False  # --requeue
    billing: float = 0.0  # what it costs a second; 0 where the log does not say
    nice: int = 0
    features: str = ""
    nodelist: str = ""  # that it must have
    exclude: str = ""
    switches: int = 0  # leaf switches at most; 0: any number
    switch_wait: float = math.inf  # seconds for which it waits for them
    licenses: str = ""
    reservation: str = ""
    array: str = ""  # id of its array
    task: int = 0  # its number in the array
    array_limit: int = 0  # tasks at a time; 0: all
    needs: tuple[Need, ...] = ()
    any_need: bool = False  # whether one of `needs` is enough
    singleton: str = ""  # its name
    hosts: str = ""  # that it had
    cpus_had: int = 0
    options: tuple[str, ...] = ()  # of its submission, that the model does not know
    priority: float = math.nan  # at its submission
    reason: str = ""
    by_backfill: bool = False  # whether the backfill started it
    before: bool = False  # whether it ran when the log began

    @property
    def started(self) -> bool:
        """Whether it ever ran."""
        return self.start != NEVER

    @property
    def submitted(self) -> int:
        """When it was submitted first."""
        return self.submit if self.first_submit == NEVER else self.first_submit

    @property
    def wait(self) -> float:
        """Seconds from submission to start."""
        return float(self.start - self.submit)
