"""Options and arguments that commands share, and how their texts are read."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from decision.model.computer import find_platform, find_workload
from decision.model.errors import ConfigError
from decision.model.hosts import MOST_HOSTS
from decision.report.plots import Paper

from .declared import Argument, Option

if TYPE_CHECKING:
    from decision.batsim.episodes import BatsimForEpisodes
    from decision.experiments import Engine
    from decision.experiments.run import RealBatsim
    from decision.experiments.tasks import How
    from decision.files.accounting.read import TraceOptions
    from decision.files.events import SeriesLayout

_input_option = partial(Option, panel="Input")
_jobs_option = partial(Option, panel="Jobs of the workload")
_logs_option = partial(Option, panel="How logs are read")
simulator_option = partial(Option, panel="Simulator")
_limits_option = partial(Option, panel="Time limits")
_machines_option = partial(Option, panel="Many machines")
_pictures_option = partial(Option, panel="Pictures")
_MOST_JOBS = 10_000_000  # more are a mistake, or more than fits into memory

DEFAULT_TIMEOUT = 300.0  # seconds
DEFAULT_DECIDE_LIMIT = 60.0  # seconds


class WalltimeName(StrEnum):
    """Where the walltimes of a log's jobs come from."""

    REQUESTED = "requested"
    RUNTIME = "runtime"
    NONE = "none"


# --- Output ---------------------------------------------------------------------------------------------------------

JsonOption = Annotated[
    bool,
    Option(
        "--json", help="Print one JSON document (SI units, shares from 0 to 1) instead of text.", panel="Every command"
    ),
]
PdfOption = Annotated[bool, Option("--pdf", help="Print the page to PDF, too, where Chromium or Chrome is at hand.")]


def _named(text: str | Path) -> Path:
    """A path; not an empty text, which a shell makes of a variable that is not set, and which is the current folder."""
    if not str(text).strip():
        raise ConfigError("--output: the name is empty; give one, or . for the current folder")
    return Path(text)


OutputFolder = Annotated[Path, Option("--output", "-o", help="Output folder.", metavar="FOLDER", parser=_named)]
OutputFile = Annotated[Path, Option("--output", "-o", help="Output file.", metavar="FILE", parser=_named)]

# --- What is simulated ----------------------------------------------------------------------------------------------

PlatformArgument = Annotated[
    Path, Argument(help="SimGrid platform (XML), or a shipped platform's name.", metavar="FILE", parser=find_platform)
]
PlatformOption = Annotated[
    Path,
    _input_option(
        "--platform",
        "-p",
        help="SimGrid platform (XML), or a shipped platform's name.",
        metavar="FILE",
        parser=find_platform,
    ),
]
MasterOption = Annotated[str, Option("--master", help="Host on which Batsim itself runs.", metavar="HOST")]
WorkloadArgument = Annotated[
    Path,
    Argument(
        help="Log or accounting records of any known format, table of jobs, Batsim workload (JSON), a shipped "
        "workload's name, or - for standard input; may be compressed.",
        metavar="FILE",
        parser=find_workload,
    ),
]
WorkloadOption = Annotated[
    Path,
    _input_option(
        "--workload",
        "-w",
        help="Batsim workload (JSON), log of any known format, a shipped workload's name, or - for standard input.",
        metavar="FILE",
        parser=find_workload,
    ),
]
WorkloadsOption = Annotated[
    list[Path],
    _input_option(
        "--workload",
        "-w",
        help="Batsim workload (JSON), log of any known format, a shipped workload's name, or - for standard input; "
        "may be repeated.",
        metavar="FILE",
        parser=find_workload,
    ),
]
EventsOption = Annotated[
    list[Path] | None, _input_option("--events", help="Batsim external events; may be repeated.", metavar="FILE")
]
EnergyOption = Annotated[bool, _input_option("--energy", "-E", help="Simulate power states and energy.")]
SharingOption = Annotated[
    bool, _input_option("--enable-compute-sharing", help="Let several jobs compute on one host, as Batsim's option.")
]
SelectOption = Annotated[
    str | None, _jobs_option("--select", help="Use only jobs A to B - 1, in order of submission.", metavar="A:B")
]
DaysOption = Annotated[
    str | None,
    _jobs_option(
        "--days", help="Run each of these days alone: A to B - 1 of those with two submissions or more.", metavar="A:B"
    ),
]
NodesOption = Annotated[int | None, _jobs_option("--nodes", help="Leave out jobs that need more hosts.", min=1)]
WalltimeOption = Annotated[
    WalltimeName, _jobs_option("--walltime", help="Walltimes: as requested, the run time (perfect estimates), or none.")
]
MissingWalltimeOption = Annotated[
    str,
    _logs_option(
        "--missing-walltime",
        help="Walltime of a log's jobs without a requested time: none, runtime (perfect estimates), longest, or a "
        "model as --estimates of workload convert has it.",
        metavar="MODEL",
    ),
]
FeedbackOption = Annotated[
    bool,
    _jobs_option(
        "--feedback",
        help="Submit each user's next session when the jobs that it came after in the log have ended, with the log's "
        "think times (closed loop); for logs with users and starts.",
    ),
]
ShakeOption = Annotated[
    int, Option("--shake", help="Copies of the whole log with shaken submissions.", min=1, max=1000, metavar="N")
]
TimeFieldOption = Annotated[
    int | None,
    _logs_option(
        "--time-field",
        help="Field of SWF logs that holds the requested time, counted from 1; the standard's field 9 by default.",
        min=1,
        max=18,
        metavar="N",
    ),
]

TimeZoneOption = Annotated[
    str | None,
    _logs_option(
        "--time-zone",
        help="Time zone of a log's local times, such as Europe/Berlin.",
        show_default="UTC",
        metavar="ZONE",
    ),
]

# --- Who decides and simulates --------------------------------------------------------------------------------------

PolicyOption = Annotated[
    str,
    Option(
        "--policy",
        help="Name listed by [bold]decision policies[/bold], checkpoint.ckpt, module:Class, ./file.py:Class or "
        "pybatsim:module:Class.",
        metavar="POLICY",
    ),
]
SettingsOption = Annotated[
    list[str] | None, Option("--option", "-O", help="Policy option; may be repeated.", metavar="NAME=VALUE")
]
ForceOption = Annotated[
    bool, Option("--force", help="Also a checkpoint that has not passed its gates (decision gates).")
]
SeedOption = Annotated[int, Option("--seed", help="Random seed.", min=0)]
BatsimOption = Annotated[
    str, simulator_option("--batsim", help="Batsim executable, for --engine batsim.", metavar="PATH")
]
ProcessesOption = Annotated[
    int | None, Option("--processes", "-j", help="Number of parallel processes; one per core by default.", min=1)
]
TimeoutOption = Annotated[
    float, _limits_option("--timeout", help="Seconds to wait for the other process; 0 means no limit.", min=0.0)
]
DecideLimitOption = Annotated[
    float,
    _limits_option(
        "--decide-limit",
        help="Seconds that a policy in Python may take for one decision; 0 means no limit.",
        min=0.0,
        metavar="SECONDS",
    ),
]

# --- How workloads and platforms are made ---------------------------------------------------------------------------

NbJobsOption = Annotated[int, Option("--nb-jobs", help="Number of jobs.", min=1, max=_MOST_JOBS)]
HostsOption = Annotated[int, Option("--hosts", help="Number of hosts; jobs are not larger.", min=1, max=MOST_HOSTS)]
EstimatesOption = Annotated[
    str,
    Option(
        "--estimates",
        help="Walltimes: exact (the run times), factor:F (F times the run times), or tsafrir (a few round values, as "
        "users choose them; tsafrir:SECONDS sets the longest).",
        metavar="MODEL",
    ),
]
SpeedOption = Annotated[
    str | None, Option("--speed", help="Host speed, for jobs that compute, such as 11.77Gf.", metavar="FLOPS")
]
SimgridOption = Annotated[
    str | None,
    Option(
        "--simgrid",
        help="SimGrid version that will read the file, such as 3.24, 3.28 or 4.0; by default 3.32, that of Batsim "
        "4.2.1.",
        metavar="VERSION",
        panel="SimGrid version",
    ),
]

# How the texts of options are read: pairs, ranges, days, speeds.


def read_pairs(pairs: Iterable[str] | None, option: str = "--option") -> dict[str, str]:
    """Values by name from the ``name=value`` pairs of an option that may be repeated.

    Raises:
        ConfigError: for a pair without ``=`` or a name given twice.
    """
    settings: dict[str, str] = {}
    for pair in pairs or ():
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise ConfigError(f"{option} {pair!r}: write it as name=value")
        if name in settings:
            raise ConfigError(f"{option} {name}: given twice, as {settings[name]!r} and {value!r}")
        settings[name] = value
    return settings


def read_range(text: str | None, option: str = "--select") -> slice | None:
    """A range of jobs or days from ``a:b``, ``a:`` or ``:b``.

    Raises:
        ConfigError: if it is not written so.
    """
    if text is None:
        return None
    first, colon, last = text.partition(":")
    if not colon or not all(part == "" or part.isdigit() for part in (first, last)):
        raise ConfigError(f"{option} {text!r}: write it as a:b, like 0:1000")
    return slice(int(first) if first else None, int(last) if last else None)


def read_days(text: str | None) -> tuple[int, int | None] | None:
    """The days of ``--days a:b``, None where none were named. Raises ConfigError."""
    chosen = read_range(text, "--days")
    return None if chosen is None else (chosen.start or 0, chosen.stop)


def read_speed(text: str | None) -> float | None:
    """A host's speed in flop/s.

    Raises:
        ConfigError: if it is not a speed above 0.
    """
    from decision.files.simgrid.values import parse_speed

    if text is None:
        return None
    speed = parse_speed(text)
    if speed <= 0:
        raise ConfigError(f"--speed {text}: must be above 0")
    return speed


# Options of the commands that do many runs: how many at a time, on which machines, and for how long.

LimitOption = Annotated[
    float,
    _machines_option(
        "--limit",
        help="Seconds that a run may take; one that takes longer has failed, and the others go on. 0 means no limit.",
        min=0.0,
        metavar="SECONDS",
    ),
]
ShareOption = Annotated[
    str | None,
    _machines_option(
        "--share",
        help="Do only the runs of share I of 0 to N - 1, as a job of an array does; the same command without it "
        "collects them.",
        metavar="I/N",
    ),
]
OnOption = Annotated[
    str,
    _machines_option(
        "--on",
        help="Where runs are done: local, a batch system (slurm, oar, pbs, lsf, sge, htcondor) that gets a job for "
        "each of -j workers, or a Dask scheduler (tcp://HOST:PORT, or its file.json).",
        metavar="CLUSTER",
    ),
]
SubmitOption = Annotated[
    str,
    _machines_option(
        "--submit",
        help="Options of the jobs, as the batch system spells them: time, memory, queue.",
        metavar='"OPTIONS"',
        show_default=False,
    ),
]
WaitOption = Annotated[
    float,
    _machines_option("--wait", help="Seconds until the first worker of --on has begun.", min=1.0, metavar="SECONDS"),
]
AuditOption = Annotated[
    float,
    _machines_option(
        "--audit",
        help="Share of the runs, from 0 to 1, that are done again by another worker; their results must be equal.",
        min=0.0,
        max=1.0,
    ),
]


class EpisodeEngine(StrEnum):
    """What simulates the episodes of a training."""

    EMBEDDED = "embedded"
    BATSIM = "batsim"
    DOCKER = "docker"


class EpisodeOptions(NamedTuple):
    """What simulates episodes, as the user wants it."""

    engine: Annotated[EpisodeEngine, Option("--engine", help="What simulates.")] = EpisodeEngine.EMBEDDED
    batsim: Annotated[
        str | None,
        simulator_option(
            "--batsim", help="Batsim executable, for --engine batsim.", metavar="PATH", show_default="batsim"
        ),
    ] = None
    batsim_args: Annotated[
        str, simulator_option("--batsim-args", help="More options of Batsim, in one text.", metavar="TEXT")
    ] = ""
    image: Annotated[
        str | None,
        simulator_option(
            "--image",
            help="Batsim's Docker image, for --engine docker.",
            metavar="NAME:TAG",
            show_default="oarteam/batsim:latest",
        ),
    ] = None
    timeout: TimeoutOption = DEFAULT_TIMEOUT

    def read(self) -> "BatsimForEpisodes | None":
        """The Batsim that environments start; None for the embedded engine. Raises ConfigError."""
        from decision.batsim.episodes import engine_of

        return engine_of(self.engine.value, self.batsim, self.batsim_args, self.image, self.timeout)

    @property
    def run_engine(self) -> "tuple[Engine, RealBatsim] | None":
        """What `decision.experiments.run.run_in_batsim` takes; None for the embedded engine. Raises ConfigError."""
        from decision.experiments.run import real_batsim

        batsim = self.read()
        return None if batsim is None else real_batsim(batsim)


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
        """What `decision.experiments.tasks.run_tasks` takes; workers elsewhere end with the block."""
        from decision.model.computer import available_workers

        how: How = {"share": None, "audit": self.audit}
        if self.share is not None:
            from decision.experiments.tasks import Share

            number, slash, of = self.share.partition("/")
            if not (slash and number.isdecimal() and of.isdecimal()) or not int(number) < int(of):
                wanted = "write it as I/N with I from 0 to N - 1, like 0/10"
                raise ConfigError(f"{self.share!r}: {wanted}", field="share")
            how["share"] = Share(int(number), int(of))
        processes = self.processes or available_workers()
        if not self.elsewhere:
            if self.submit:
                raise ConfigError("nothing is submitted; say where with --on, or leave the option out", field="submit")
            yield {**how, "processes": processes, "limit": self.limit}
            return
        if self.share is not None:
            raise ConfigError("a share is done here; leave one of the two options out", field="share")
        from decision.experiments.cluster import cluster

        from .terminal import note

        note(f"waiting for workers of {self.on}")
        with cluster(self.on, processes, submit=self.submit, wait=self.wait, limit=self.limit) as executor:
            yield {**how, "executor": executor}


# Options of pictures: their file, format, width, type size, and pixels per inch.

PlotFile = Annotated[
    Path | None, Option("--plot", help="Picture to draw (.png, .svg or .pdf).", metavar="FILE", show_default=False)
]

PAPER = Paper()


class PictureFormat(StrEnum):
    """Format of the files of pictures."""

    PNG = "png"
    SVG = "svg"
    PDF = "pdf"


FormatOption = Annotated[PictureFormat, _pictures_option("--format", help="Image format; includes --plot.")]
WidthOption = Annotated[
    float, _pictures_option("--width", help="Width of pictures, inches.", min=2.0, max=20.0, metavar="INCHES")
]
TypeSizeOption = Annotated[
    float, _pictures_option("--type-size", help="Type size in pictures, points.", min=4, max=24, metavar="POINTS")
]
DpiOption = Annotated[
    float, _pictures_option("--dpi", help="Pixels per inch of PNG.", min=50.0, max=600.0, metavar="N")
]

# Options of commands that read logs: the format, what a host is, the machine, the time zone, the columns.

Format = Annotated[
    str | None,
    _logs_option(
        "--format",
        help="Format of the input, where its content is misread: json, swf, gwf, oar, sacct, sacct-json, pbs, lsf, "
        "sge, csv or parquet.",
        metavar="FORMAT",
        show_default=False,
    ),
]
UnitOption = Annotated[
    str,
    _logs_option(
        "--unit",
        help="What a host is: nodes, cores, gpus, or auto: nodes where at most 2 % of the jobs shared one, else cores.",
        metavar="UNIT",
    ),
]
Machine = Annotated[
    int | None,
    _logs_option(
        "--machine",
        help="Hosts of the machine; by default those of the header, a file FILE.machines, the distinct nodes, or the "
        "peak of recorded use.",
        min=1,
        metavar="N",
    ),
]
Columns = Annotated[
    str | None,
    _logs_option(
        "--columns",
        help="Names of sacct's columns with commas between them, where there is no header; or a TOML file that says "
        "which columns of a table are submit, wait or start, run or end, size, walltime, user and id.",
        metavar="NAMES|FILE",
    ),
]


Cluster = Annotated[
    str | None,
    _logs_option(
        "--cluster", help="Of records of several clusters (sacct) or servers (PBS): the one to read.", metavar="NAME"
    ),
]


class LogReading(NamedTuple):
    """How logs are read, as the user wants it."""

    kind: Format = None
    unit: UnitOption = "auto"
    machine: Machine = None
    time_zone: TimeZoneOption = None
    columns: Columns = None
    cluster: Cluster = None

    def options(self, time_field: int | None = None, given: str | None = None) -> "TraceOptions":
        """What readers of logs take; `given` is the format, where the command says it."""
        from decision.files.accounting.read import TraceOptions

        return TraceOptions(
            format=self.kind or given,
            unit=self.unit,
            machine=self.machine,
            time_zone=self.time_zone,
            columns=self.columns,
            cluster=self.cluster,
            time_field=time_field,
        )


# Options of commands that read a series of values by time.


class Gaps(StrEnum):
    """What becomes of what a table leaves out."""

    REFUSE = "refuse"
    HOLD = "hold"
    LINEAR = "linear"


TimeColumn = Annotated[
    str | None, Option("--time-column", help="Column with the time; by default one called so.", metavar="NAME")
]
ColumnName = Annotated[
    str | None, Option("--column", help="Column with the values; by default one called so.", metavar="NAME")
]
Begin = Annotated[
    str | None,
    Option("--begin", help="Time in the table at which the simulation begins; by default its first.", metavar="TIME"),
]
GapsOption = Annotated[
    Gaps, Option("--gaps", help="What fills gaps: nothing, the value before, or a line to the next.")
]


def layout_of(time_column: str | None, column: str | None, begin: str | None, gaps: Gaps) -> "SeriesLayout":
    """What the options say of a table."""
    from decision.files.events import SeriesLayout

    return SeriesLayout(time_column=time_column or "", column=column or "", begin=begin or "", gaps=gaps.value)
