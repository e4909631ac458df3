"""``decision batsim`` and ``batsim5``: the embedded engine with the options of Batsim 4 and 5."""

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import click

from decision import __version__
from decision.experiments import Verbosity
from decision.model.errors import ConfigError

from .command import printing, read_config
from .declared import Option
from .options import EnergyOption, EventsOption, PlatformOption, SharingOption
from .terminal import note, say

_BATSIM_VERSION = "4.2.1"
_OURS = f"(the replacement by decision {__version__})"

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
    bool,
    Option(
        "--version",
        help="Print the version and exit.",
        callback=printing(lambda _: f"{_BATSIM_VERSION} {_OURS}"),
        is_eager=True,
    ),
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


# ``decision batsim5``: the embedded engine with the options of Batsim 5.

# Options of two words, as Batsim 5 has them, and what those are
PAIRS = {
    "--edc-socket-str": ("-s", "ENDPOINT INIT"),
    "--edc-socket-file": ("-S", "ENDPOINT FILE"),
    "--edc-library-str": ("-l", "LIBRARY INIT"),
    "--edc-library-file": ("-L", "LIBRARY FILE"),
    "--add-role": ("-r", "HOST ROLE"),
}


def read_pair_config(context: Any, parameter: Any, path: Path | None) -> Path | None:
    """Take options from a file, in which the two words of an option are a list."""
    read_config(context, parameter, path)
    for name in PAIRS:
        key = name.removeprefix("--").replace("-", "_")
        words = (context.default_map or {}).get(key)
        if isinstance(words, list):
            if len(words) % 2:
                raise ConfigError(f"{path}, {name[2:]}: two words are needed, {PAIRS[name][1]}")
            context.default_map[key] = list(zip(words[::2], words[1::2], strict=True))
    return path


def pair_option(name: str, help_: str) -> Any:
    """An option of two words, one of `PAIRS`."""
    short, words = PAIRS[name]

    def word(text: str) -> str:
        if text.startswith("--") or text in [other for other, _ in PAIRS.values()]:
            raise ConfigError(f"{short}: needs two words, {words}; an empty text is ''")
        return text

    return Option(short, name, help=help_, metavar=words, parser=word)


_VERSION_5 = "v5.0.0-rc2"

# Options of Batsim that only Batsim supports, and what they ask for
_REFUSED_BY_5 = {
    "--energy": "the energy of links, which Batsim 5 has not either",
    "-E": "the energy of links, which Batsim 5 has not either; give --energy-host",
    "--energy-link": "the energy of links, which Batsim 5 has not either",
    "--sg-cfg": "SimGrid's configuration",
    "--sg-log": "SimGrid's logs",
    "--simgrid-version": "SimGrid",
    "--simgrid-git-commit": "SimGrid",
}
_OF_4 = {
    "--socket-endpoint": "-s ENDPOINT INIT",
    "--events": "--external-events",
    "--enable-dynamic-jobs": "what the decision component's hello asks for",
    "--add-role-to-hosts": "-r HOST ROLE",
    "--disable-machine-state-tracing": "--trace-machine-state, without which there is no trace",
}


Workloads5 = Annotated[
    list[Path] | None, Option("-w", "--workload", help="Batsim 5 workload; may be repeated.", metavar="FILE")
]
PlatformFile = Annotated[
    Path | None, Option("-p", "--platform", help="SimGrid platform, or a shipped one's name.", metavar="FILE")
]
Events = Annotated[
    list[Path] | None, Option("--ee", "--external-events", help="External events; may be repeated.", metavar="FILE")
]
Export5 = Annotated[str, Option("-e", "--export", help="Prefix of the output files.", metavar="PREFIX")]
States = Annotated[bool, Option("--trace-machine-state", help="Write machine_states.csv.")]
Pstates = Annotated[bool, Option("--trace-pstate-changes", help="Write pstate_changes.csv.")]
Probes = Annotated[str, Option("--trace-probe-data", help="Taken, and without effect.", metavar="WHEN")]
SocketText = Annotated[
    list[tuple[str, str]] | None, pair_option("--edc-socket-str", "Decide by a process; INIT is a text for it.")
]
SocketFile = Annotated[
    list[tuple[str, str]] | None, pair_option("--edc-socket-file", "The same, with the text of a file.")
]
LibraryText = Annotated[
    list[tuple[str, str]] | None, pair_option("--edc-library-str", "Decide by a library; INIT is a text for it.")
]
LibraryFile = Annotated[
    list[tuple[str, str]] | None, pair_option("--edc-library-file", "The same, with the text of a file.")
]
Method = Annotated[
    str,
    Option(
        "--edc-library-load-method",
        help="How it is loaded, dlopen or dlmopen; a library has a process of its own here.",
    ),
]
Schema = Annotated[
    Path | None,
    Option("--schema", help="Schema (.fbs) of the messages of a process that answers in binary.", metavar="FILE"),
]
Master5 = Annotated[str, Option("-m", "--master-host", help="Host that runs no jobs.", metavar="NAME")]
Roles5 = Annotated[
    list[tuple[str, str]] | None, pair_option("--add-role", "Role of a host: master, storage or compute_node.")
]
Energy = Annotated[bool, Option("--energy-host", help="Simulate the energy of hosts.")]
Level5 = Annotated[str, Option("-v", "--verbosity", help="How much is said: quiet, info or debug.")]
Quiet5 = Annotated[bool, Option("-q", "--quiet", help="Same as --verbosity quiet.")]
Config = Annotated[
    Path | None,
    Option(
        "-c", "--config", help="Options from a TOML file.", metavar="FILE", callback=read_pair_config, is_eager=True
    ),
]
GenConfig = Annotated[Path | None, Option("--gen-config", help="Write the options into a TOML file.", metavar="FILE")]
Context = Annotated[bool, Option("--dump-execution-context", help="Print the execution context and exit.")]
Timeout5 = Annotated[float, Option("--timeout", help="Seconds to wait for a reply; 0 means no limit.", min=0.0)]
Version5 = Annotated[
    bool,
    Option(
        "--version",
        "--batsim-version",
        help="Print the version and exit.",
        callback=printing(lambda _: f"{_VERSION_5} {_OURS}"),
        is_eager=True,
    ),
]
Commit = Annotated[
    bool,
    Option(
        "--batsim-git-commit",
        help="Print the commit and exit.",
        callback=printing(lambda _: f"none {_OURS}"),
        is_eager=True,
    ),
]


def batsim5_command(
    ctx: click.Context,
    platform: PlatformFile = None,
    workload: Workloads5 = None,
    external_events: Events = None,
    export: Export5 = "out/",
    trace_machine_state: States = False,
    trace_pstate_changes: Pstates = False,
    trace_probe_data: Probes = "auto",
    edc_socket_str: SocketText = None,
    edc_socket_file: SocketFile = None,
    edc_library_str: LibraryText = None,
    edc_library_file: LibraryFile = None,
    edc_library_load_method: Method = "dlopen",
    schema: Schema = None,
    master_host: Master5 = "master_host",
    add_role: Roles5 = None,
    mmax: MMax = 0,
    mmax_workload: MMaxWorkload = False,
    energy_host: Energy = False,
    verbosity: Level5 = "info",
    quiet: Quiet5 = False,
    config: Config = None,
    gen_config: GenConfig = None,
    dump_execution_context: Context = False,
    timeout: Timeout5 = 0.0,
    version: Version5 = False,
    commit: Commit = False,
) -> None:
    """Replace Batsim 5: simulate for a decision component, a process or a library.

    Takes the options of Batsim 5.0.0-rc2 and writes its output files. Options for
    what only Batsim supports are refused by name. decision-batsim5 is an alias
    for programs that start a Batsim.

    Examples, the first with decision serve --policy easy in another terminal:

      decision batsim5 -p platform.xml -w workload.json -s tcp://localhost:28000 ''

      decision batsim5 -p platform.xml -w workload.json -l ./libfcfs.so '{}'
    """
    from decision.experiments.standin import Batsim5Inputs, Peer, execution_context, run_standin5

    for argument in ctx.args:  # what is not an option of ours
        name = argument.partition("=")[0]
        if name in _REFUSED_BY_5:
            raise ConfigError(f"{name}: {_REFUSED_BY_5[name]}: not supported by this engine")
        if name in _OF_4:
            raise ConfigError(f"{name}: an option of Batsim 4; Batsim 5 has {_OF_4[name]}")
        raise ConfigError(f"{argument}: no such option; decision batsim5 --help lists them")
    if gen_config is not None:
        _write_config(ctx, gen_config)
    if trace_probe_data not in ("always", "never", "auto") or edc_library_load_method not in ("dlopen", "dlmopen"):
        raise ConfigError("--trace-probe-data is always, never or auto; --edc-library-load-method dlopen or dlmopen")
    given = [
        Peer(place, _read_text(text) if from_file else text, is_library)
        for pairs, is_library, from_file in (
            (edc_socket_str, False, False),
            (edc_socket_file, False, True),
            (edc_library_str, True, False),
            (edc_library_file, True, True),
        )
        for place, text in pairs or ()
    ]
    if len(given) != 1:
        found = "several decision components, and Batsim 5 takes one" if given else "no decision component"
        raise ConfigError(f"{found}; give one of -s ENDPOINT INIT, -S, -l LIBRARY INIT, -L")
    if dump_execution_context:
        say(execution_context(given[0], export))
        return
    if platform is None:
        raise ConfigError("no platform; give -p FILE")
    inputs = Batsim5Inputs(
        platform=platform,
        workloads=tuple(workload or ()),
        events=tuple(external_events or ()),
        master=master_host,
        roles=dict(add_role or ()),
        mmax=mmax,
        mmax_workload=mmax_workload,
        energy=energy_host,
        machine_states=trace_machine_state,
        pstate_changes=trace_pstate_changes,
    )
    schema_text = None if schema is None else _read_text(str(schema))
    run_standin5(inputs, given[0], export, schema=schema_text, timeout=timeout)
    if not quiet and verbosity != "quiet":
        note(f"the simulation has ended; see {export}*")


def _read_text(path: str) -> str:
    """The text of a file. Raises ConfigError."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error}); give a file with the text") from None


def _write_config(ctx: click.Context, path: Path) -> None:
    """Write what was given as TOML, under the long names. Raises ConfigError."""
    lines = []
    for option in ctx.command.params:
        source = ctx.get_parameter_source(option.name or "")
        if (
            option.name in ("config", "gen_config")
            or source is None
            or source.name not in ("COMMANDLINE", "DEFAULT_MAP")
        ):
            continue
        value = ctx.params[option.name or ""]
        several = value if isinstance(value, tuple) else (value,)
        words = [word for each in several for word in (each if isinstance(each, tuple) else (each,))]
        texts = [
            str(word).lower()
            if isinstance(word, bool)
            else str(word)
            if isinstance(word, int | float)
            else json.dumps(str(word), ensure_ascii=False)
            for word in words
        ]
        shown = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        lines.append(f"{max(option.opts, key=len).removeprefix('--')}={shown}\n")
    text = "".join(lines)
    tomllib.loads(text)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written ({error.strerror}); choose another file") from None
