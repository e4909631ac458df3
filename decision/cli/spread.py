"""Options of the commands that do many runs: how many at a time, on which machines, and for how long."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from decision.model.errors import ConfigError

from .options import ProcessesOption

if TYPE_CHECKING:
    from decision.runs.tasks import How

_many_machines_option = partial(typer.Option, rich_help_panel="Many machines")

LimitOption = Annotated[
    float,
    _many_machines_option(
        "--limit",
        help="Seconds that a run may take; one that takes longer has failed, and the others go on. 0 means no limit.",
        min=0.0,
        metavar="SECONDS",
    ),
]
ShareOption = Annotated[
    str | None,
    _many_machines_option(
        "--share",
        help="Do only the runs of share I of 0 to N - 1, as a job of an array does; the same command without it "
        "collects them.",
        metavar="I/N",
    ),
]
OnOption = Annotated[
    str,
    _many_machines_option(
        "--on",
        help="Where runs are done: local, a batch system (slurm, oar, pbs, lsf, sge, htcondor) that gets a job for "
        "each of -j workers, or a Dask scheduler (tcp://HOST:PORT, or its file.json).",
        metavar="CLUSTER",
    ),
]
SubmitOption = Annotated[
    str,
    _many_machines_option(
        "--submit",
        help="Options of the jobs, as the batch system spells them: time, memory, queue.",
        metavar='"OPTIONS"',
        show_default=False,
    ),
]
WaitOption = Annotated[
    float,
    _many_machines_option(
        "--wait", help="Seconds until the first worker of --on has begun.", min=1.0, metavar="SECONDS"
    ),
]
AuditOption = Annotated[
    float,
    _many_machines_option(
        "--audit",
        help="Share of the runs, from 0 to 1, that are done again by another worker; their results must be equal.",
        min=0.0,
        max=1.0,
    ),
]


class Spread(NamedTuple):
    """How the runs of a command are done, as the user wants it."""

    processes: ProcessesOption = None
    limit: LimitOption = 0.0
    share: ShareOption = None
    on: OnOption = "local"
    submit: SubmitOption = ""
    wait: WaitOption = 600.0
    audit: AuditOption = 0.0

    @property
    def elsewhere(self) -> bool:
        """Whether the work is done by a cluster."""
        return self.on != "local"

    @contextmanager
    def begun(self) -> "Iterator[How]":
        """What `decision.runs.tasks.run_tasks` takes; workers elsewhere end with the block."""
        from decision.computer.cores import available_workers

        how: How = {"share": _read_share(self.share), "audit": self.audit}
        processes = self.processes or available_workers()
        if not self.elsewhere:
            if self.submit:
                raise ConfigError("nothing is submitted; say where with --on, or leave the option out", field="submit")
            yield {**how, "processes": processes, "limit": self.limit}
            return
        if self.share is not None:
            raise ConfigError("a share is done here; leave one of the two options out", field="share")
        from decision.runs.cluster import cluster

        from .terminal import note

        note(f"waiting for workers of {self.on}")
        with cluster(self.on, processes, submit=self.submit, wait=self.wait, limit=self.limit) as executor:
            yield {**how, "executor": executor}


def _read_share(text: str | None) -> Any:
    """A share from ``I/N``. Raises ConfigError if it is none."""
    if text is None:
        return None
    from decision.runs.tasks import Share

    number, slash, of = text.partition("/")
    if not (slash and number.isdecimal() and of.isdecimal()) or not int(number) < int(of):
        raise ConfigError(f"{text!r}: write it as I/N with I from 0 to N - 1, like 0/10", field="share")
    return Share(int(number), int(of))
