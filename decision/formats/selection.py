"""Which jobs of a workload's file are used, and with which walltimes."""

from pathlib import Path
from typing import Annotated, Any

import msgspec

from decision.model.reshape import Filters, Walltimes, reshape
from decision.model.workload import Workload

from .swf import REQUESTED_TIME
from .workload import load_workload

_Number = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a workload; see `decision.formats.load_workload`. By default all jobs as they are."""

    jobs: tuple[_Number, _Number | None] = (0, None)  # the first, and the one after the last; by order of submission
    nodes: _Number | None = None  # larger jobs are left out
    walltime: Walltimes = "requested"
    missing: str = "none"  # walltimes of jobs without one: see `decision.estimates.missing`
    time_field: _Number | None = None  # of SWF; the standard's if None
    time_zone: str | None = None  # of a log's times that say none; UTC if None

    def read(self, path: Path, name: str, *, keep_source: bool = False, speed: float | None = None) -> Workload:
        """The selected jobs of a file. Raises InputError, and ConfigError, as `decision.formats.load_workload`."""
        return load_workload(
            path,
            name,
            keep_source=keep_source,
            jobs=None if self.jobs == (0, None) else slice(*self.jobs),
            nodes=self.nodes,
            walltime=self.walltime,
            missing_walltime=self.missing,
            time_field=self.time_field,
            time_zone=self.time_zone,
            speed=speed,
        )

    def of(self, workload: Workload, *, speed: float | None = None) -> Workload:
        """The selected jobs of a workload that has been read; errors as `decision.model.reshape.reshape`."""
        jobs = None if self.jobs == (0, None) else slice(*self.jobs)
        filters = Filters(jobs=jobs, nodes=self.nodes, walltime=self.walltime, missing=self.missing, speed=speed)
        return workload if filters == Filters(speed=speed) else reshape(workload, filters)

    def facts(self) -> dict[str, Any]:
        """All options as data, of which keys of finished runs are made: a zone only where there is one."""
        facts = msgspec.to_builtins(self)
        return facts if self.time_zone else {name: value for name, value in facts.items() if name != "time_zone"}

    def texts(self) -> dict[str, str]:
        """Each option's value as a user writes it, by its name here."""
        first, last = self.jobs
        return {
            "jobs": "all" if self.jobs == (0, None) else f"{first or ''}:{'' if last is None else last}",
            "nodes": "any" if self.nodes is None else str(self.nodes),
            "walltime": self.walltime,
            "missing_walltime": self.missing,
            "time_field": str(self.time_field or REQUESTED_TIME),
            **({"time_zone": self.time_zone} if self.time_zone else {}),
        }
