"""``decision batsim``: the embedded engine behind the options of Batsim 4."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from decision import __version__
from decision.model.errors import ConfigError

from .options import EnergyOption, EventsOption, PlatformOption
from .terminal import stderr

BATSIM_VERSION = "4.2.1"

# Options of Batsim that only Batsim can honour, and what they ask for
REFUSED = {
    "-W": "workflows",
    "--workflow": "workflows",
    "--WS": "workflows",
    "--workflow-start": "workflows",
    "--enable-redis": "Redis",
    "--enable-compute-sharing": "several jobs on one host at a time",
    "--dump-execution-context": "the execution context",
    "--no-sched": "running without a decision process",
    "--sg-cfg": "SimGrid's configuration",
    "--simgrid-version": "SimGrid",
}
# Options that change nothing here, and how many values they take
HARMLESS = {
    "--redis-hostname": 1,
    "--redis-port": 1,
    "--redis-prefix": 1,
    "--workflow-jobs-limit": 1,
    "--ignore-beyond-last-workflow": 0,
    "--disable-storage-sharing": 0,
    "--disable-schedule-tracing": 0,
    "--sg-log": 1,
}

JOBS = "Jobs"
OUTPUT = "Output"


class Verbosity(StrEnum):
    """Batsim's four levels."""

    QUIET = "quiet"
    NETWORK_ONLY = "network-only"
    INFORMATION = "information"
    DEBUG = "debug"


def _print_version(value: bool) -> None:
    if value:
        print(f"{BATSIM_VERSION} (the stand-in of decision {__version__})")
        raise typer.Exit()


Workloads = Annotated[
    list[Path] | None, typer.Option("-w", "--workload", help="Workload JSON; may be repeated.", metavar="FILE")
]
Export = Annotated[str, typer.Option("-e", "--export", help="Prefix of the output files.", metavar="PREFIX")]
Endpoint = Annotated[str, typer.Option("-s", "--socket-endpoint", help="Where the decision process listens.")]
Master = Annotated[str, typer.Option("-m", "--master-host", help="The host that runs no jobs.")]
Roles = Annotated[
    list[str] | None, typer.Option("-r", "--add-role-to-hosts", help="HOST,HOST:ROLE; may be repeated.", metavar="MAP")
]
MMax = Annotated[int, typer.Option("--mmax", help="Use so many hosts at most; 0 is no limit.", min=0)]
MMaxWorkload = Annotated[bool, typer.Option("--mmax-workload", help="Use as many hosts as the workloads' nb_res.")]
Forward = Annotated[bool, typer.Option("--forward-profiles-on-submission", help="Send each job's profile with it.")]
Dynamic = Annotated[bool, typer.Option("--enable-dynamic-jobs", help="Let the decision process register jobs.")]
Acknowledge = Annotated[bool, typer.Option("--acknowledge-dynamic-jobs", help="Announce registered jobs to it.")]
Reuse = Annotated[bool, typer.Option("--enable-profile-reuse", help="Keep profiles that no job uses any more.")]
Unknown = Annotated[bool, typer.Option("--forward-unknown-events", help="Forward external events of other types.")]
SchedCfg = Annotated[str | None, typer.Option("--sched-cfg", help="A text for the decision process.")]
SchedCfgFile = Annotated[Path | None, typer.Option("--sched-cfg-file", help="The same, from a file.", metavar="FILE")]
NoStates = Annotated[bool, typer.Option("--disable-machine-state-tracing", help="Write no machine_states.csv.")]
Level = Annotated[Verbosity, typer.Option("-v", "--verbosity", help="quiet says nothing at the end.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="--verbosity quiet")]
Timeout = Annotated[float, typer.Option("--timeout", help="Seconds to wait for a reply; 0 waits for ever.", min=0.0)]
Version = Annotated[bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)]


def batsim(
    ctx: typer.Context,
    platform: PlatformOption,
    workload: Workloads = None,
    export: Export = "out",
    socket_endpoint: Endpoint = "tcp://localhost:28000",
    energy: EnergyOption = False,
    events: EventsOption = None,
    master_host: Master = "master_host",
    add_role_to_hosts: Roles = None,
    mmax: MMax = 0,
    mmax_workload: MMaxWorkload = False,
    forward_profiles_on_submission: Forward = False,
    enable_dynamic_jobs: Dynamic = False,
    acknowledge_dynamic_jobs: Acknowledge = False,
    enable_profile_reuse: Reuse = False,
    forward_unknown_events: Unknown = False,
    sched_cfg: SchedCfg = None,
    sched_cfg_file: SchedCfgFile = None,
    disable_machine_state_tracing: NoStates = False,
    verbosity: Level = Verbosity.INFORMATION,
    quiet: Quiet = False,
    timeout: Timeout = 0.0,
    version: Version = False,
) -> None:
    """Stand in for Batsim: simulate for a decision process that listens on a socket.

    Takes the options of Batsim 4 and writes its output files. What only Batsim
    can do (networks, Redis, workflows, ...) is refused by name. The command
    decision-batsim is the same, for programs that start a batsim.

    Example, with decision serve --policy easy in another terminal:

      decision batsim -p platform.xml -w workload.json -e out/easy
    """
    from decision.drivers.standin import BatsimInputs, run_standin
    from decision.engine.options import EngineOptions

    check_extra(ctx.args)
    inputs = BatsimInputs(
        platform=platform,
        workloads=tuple(workload or ()),
        events=tuple(events or ()),
        master=master_host,
        roles=read_roles(add_role_to_hosts),
        mmax=mmax,
        mmax_workload=mmax_workload,
        options=EngineOptions(
            energy=energy,
            dynamic_jobs=enable_dynamic_jobs,
            acknowledge_dynamic_jobs=acknowledge_dynamic_jobs,
            profile_reuse=enable_profile_reuse,
            forward_profiles=forward_profiles_on_submission,
            forward_unknown_events=forward_unknown_events,
            sched_config=read_sched_config(sched_cfg, sched_cfg_file),
            trace=not disable_machine_state_tracing,
        ),
    )
    run_standin(inputs, socket_endpoint, export, timeout=timeout)
    if not quiet and verbosity is not Verbosity.QUIET:
        stderr().print(f"the simulation has ended; see {export}_*.csv", highlight=False)


def check_extra(arguments: Sequence[str]) -> None:
    """Let what changes nothing pass.

    Raises:
        ConfigError: for an option of Batsim that needs Batsim, or an unknown one.
    """
    waiting = iter(arguments)
    for argument in waiting:
        name, equals, _ = argument.partition("=")
        if name in REFUSED:
            raise ConfigError(f"{name}: {REFUSED[name]} is more than this engine can do; use Batsim itself")
        if name not in HARMLESS:
            raise ConfigError(f"{argument}: no such option; decision batsim --help lists them")
        if HARMLESS[name] and not equals:
            next(waiting, None)


def read_roles(maps: Sequence[str] | None) -> dict[str, str]:
    """Roles by host name from ``host1,host2:role``.

    Raises:
        ConfigError: if a text is written otherwise.
    """
    roles: dict[str, str] = {}
    for text in maps or ():
        hosts, colon, role = text.partition(":")
        if not colon or ":" in role or not hosts:
            raise ConfigError(f"--add-role-to-hosts {text!r}: write it as host1,host2:role")
        roles.update(dict.fromkeys(hosts.split(","), role))
    return roles


def read_sched_config(text: str | None, file: Path | None) -> str:
    """The text for the decision process, given or from a file.

    Raises:
        ConfigError: if both are given, or the file cannot be read.
    """
    if file is None:
        return text or ""
    if text is not None:
        raise ConfigError("--sched-cfg and --sched-cfg-file: give one of them")
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--sched-cfg-file {file}: cannot be read ({error})") from None
