"""``decision batsim``: the embedded engine with the options of Batsim 4."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import click

from decision import __version__
from decision.experiments import Verbosity
from decision.model.errors import ConfigError

from .declared import Option
from .options import EnergyOption, EventsOption, PlatformOption, SharingOption
from .terminal import note, say

_BATSIM_VERSION = "4.2.1"

# Options of Batsim that only Batsim supports, and what they ask for
_REFUSED = {
    "-W": "workflows",
    "--workflow": "workflows",
    "--WS": "workflows",
    "--workflow-start": "workflows",
    "--enable-redis": "Redis",
    "--dump-execution-context": "the execution context",
    "--no-sched": "running without a decision process",
    "--sg-cfg": "SimGrid's configuration",
    "--simgrid-version": "SimGrid",
}
# Options that change nothing here, and how many values they take
_HARMLESS = {
    "--redis-hostname": 1,
    "--redis-port": 1,
    "--redis-prefix": 1,
    "--workflow-jobs-limit": 1,
    "--ignore-beyond-last-workflow": 0,
    "--disable-storage-sharing": 0,
    "--disable-schedule-tracing": 0,
    "--sg-log": 1,
}


def _print_version(_context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        say(f"{_BATSIM_VERSION} (the replacement by decision {__version__})")
        raise click.exceptions.Exit()


Workloads = Annotated[
    list[Path] | None, Option("-w", "--workload", help="Batsim workload (JSON); may be repeated.", metavar="FILE")
]
Export = Annotated[str, Option("-e", "--export", help="Prefix of the output files.", metavar="PREFIX")]
Endpoint = Annotated[str, Option("-s", "--socket-endpoint", help="ZeroMQ endpoint of the decision process.")]
Master = Annotated[str, Option("-m", "--master-host", help="Host that runs no jobs.")]
Roles = Annotated[
    list[str] | None,
    Option("-r", "--add-role-to-hosts", help="Roles of hosts, as HOST,HOST:ROLE; may be repeated.", metavar="MAP"),
]
MMax = Annotated[int, Option("--mmax", help="Largest number of hosts to use; 0 means no limit.", min=0)]
MMaxWorkload = Annotated[bool, Option("--mmax-workload", help="Use at most nb_res hosts, the number in the workloads.")]
Forward = Annotated[bool, Option("--forward-profiles-on-submission", help="Send the profile of each submitted job.")]
Dynamic = Annotated[bool, Option("--enable-dynamic-jobs", help="Let the decision process register jobs.")]
Acknowledge = Annotated[
    bool, Option("--acknowledge-dynamic-jobs", help="Send JOB_SUBMITTED for jobs that it registers.")
]
Reuse = Annotated[bool, Option("--enable-profile-reuse", help="Keep profiles that no job uses anymore.")]
Unknown = Annotated[bool, Option("--forward-unknown-events", help="Forward external events of other types.")]
SchedCfg = Annotated[str | None, Option("--sched-cfg", help="Text for the decision process.")]
SchedCfgFile = Annotated[
    Path | None, Option("--sched-cfg-file", help="File with the text for the decision process.", metavar="FILE")
]
NoStates = Annotated[bool, Option("--disable-machine-state-tracing", help="Do not write machine_states.csv.")]
Level = Annotated[Verbosity, Option("-v", "--verbosity", help="Verbosity; quiet prints nothing at the end.")]
Quiet = Annotated[bool, Option("-q", "--quiet", help="Same as --verbosity quiet.")]
Timeout = Annotated[float, Option("--timeout", help="Seconds to wait for a reply; 0 means no limit.", min=0.0)]
Version = Annotated[
    bool, Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
]


def batsim_command(
    ctx: click.Context,
    platform: PlatformOption,
    workload: Workloads = None,
    export: Export = "out",
    endpoint: Endpoint = "tcp://localhost:28000",
    energy: EnergyOption = False,
    events: EventsOption = None,
    master_host: Master = "master_host",
    add_role_to_hosts: Roles = None,
    mmax: MMax = 0,
    mmax_workload: MMaxWorkload = False,
    forward_profiles: Forward = False,
    dynamic_jobs: Dynamic = False,
    acknowledge_dynamic_jobs: Acknowledge = False,
    profile_reuse: Reuse = False,
    compute_sharing: SharingOption = False,
    forward_unknown_events: Unknown = False,
    sched_cfg: SchedCfg = None,
    sched_cfg_file: SchedCfgFile = None,
    disable_machine_state_tracing: NoStates = False,
    verbosity: Level = Verbosity.INFORMATION,
    quiet: Quiet = False,
    timeout: Timeout = 0.0,
    version: Version = False,
) -> None:
    """Replace Batsim: simulate for a decision process that listens on a socket.

    Takes the options of Batsim 4 and writes its output files. Options for what
    only Batsim supports (networks, Redis, workflows, ...) are refused by name.
    decision-batsim is an alias for programs that start a Batsim.

    Example, with decision serve --policy easy in another terminal:

      decision batsim -p platform.xml -w workload.json -e out/easy
    """
    from decision.engine.rules import EngineOptions
    from decision.experiments.standin import BatsimInputs, run_standin

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
            dynamic_jobs=dynamic_jobs,
            acknowledge_dynamic_jobs=acknowledge_dynamic_jobs,
            profile_reuse=profile_reuse,
            compute_sharing=compute_sharing,
            forward_profiles=forward_profiles,
            forward_unknown_events=forward_unknown_events,
            sched_config=read_sched_config(sched_cfg, sched_cfg_file),
            trace=not disable_machine_state_tracing,
        ),
    )
    run_standin(inputs, endpoint, export, timeout=timeout)
    if not quiet and verbosity is not Verbosity.QUIET:
        note(f"the simulation has ended; see {export}_*.csv")


def check_extra(arguments: Sequence[str]) -> None:
    """Accept options that change nothing.

    Raises:
        ConfigError: for an option of Batsim that needs Batsim, or an unknown one.
    """
    waiting = iter(arguments)
    for argument in waiting:
        name, equals, _ = argument.partition("=")
        if name in _REFUSED:
            raise ConfigError(f"{name}: {_REFUSED[name]}: not supported by this engine; use Batsim itself")
        if name not in _HARMLESS:
            raise ConfigError(f"{argument}: no such option; decision batsim --help lists them")
        if _HARMLESS[name] and not equals:
            next(waiting, None)


def read_roles(maps: Sequence[str] | None) -> dict[str, str]:
    """Roles by host name from ``host1,host2:role``.

    Raises:
        ConfigError: if a text is not written so.
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
