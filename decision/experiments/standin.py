"""Our engine in the place of a Batsim 4 or 5: from that Batsim's options to its output files."""

import json
import sys
import time
from pathlib import Path

import msgspec

from decision.batsim.zeromq import ask_all, check_endpoint
from decision.engine.rules import EngineOptions
from decision.files import load_workload, write_run
from decision.files.events import load_texts
from decision.files.outputs_read import forget_run
from decision.files.outputs_write import write_run_of_5
from decision.files.profiles import is_of_4, is_of_5
from decision.files.text import read_bytes
from decision.model.computer import find_workload
from decision.model.errors import ConfigError, InputError
from decision.model.record import RunRecord
from decision.model.workload import Workload
from decision.protocol.versions import V5

from .inputs import StandinInputs, read_events, writable_folder
from .run import engine_that_starts_at_once, make_engine


class BatsimInputs(StandinInputs, frozen=True, kw_only=True):
    """What Batsim's command line says about a simulation."""

    options: EngineOptions = EngineOptions()


def run_standin(inputs: BatsimInputs, endpoint: str, prefix: str, *, timeout: float = 0.0) -> None:
    """Simulate what Batsim's options say, with the decisions of another process, and write ``PREFIX_*.csv``.

    A decision process waits for Batsim's next message, often with a timeout. So where the compiled engine would first
    have to be compiled, the engine in plain Python simulates: it sends and writes the same, and starts at once.

    Raises:
        ConfigError: if an input cannot be used or the files cannot be written; and as `ask_all`.
    """
    check_endpoint(endpoint)  # before all that takes longer
    if inputs.options.profile_reuse and not inputs.options.dynamic_jobs:
        raise ConfigError("profile reuse needs dynamic jobs, as in Batsim; enable them too", field="dynamic_jobs")
    writable_folder(Path(prefix).parent)
    workloads = [_workload(path, f"w{i}", 4) for i, path in enumerate(inputs.workloads)]
    platform = inputs.load_platform(workloads, energy=inputs.options.energy)
    events = read_events(inputs.events, len(platform.hosts), inputs.options.forward_unknown_events)
    engine = make_engine(engine_that_starts_at_once(), platform, workloads, events, inputs.options)
    write_run(prefix, ask_all(engine, endpoint, timeout=timeout))
    forget_run(Path(prefix).parent)


def _workload(path: Path, name: str, version: int) -> Workload:
    """The workload under its absolute path, which is what Batsim sends to the decision process."""
    other, is_of_other = (5, is_of_5) if version == 4 else (4, is_of_4)
    if is_of_other(read_bytes(find_workload(path))):
        advice = f"decision workload convert --to {version} converts it"
        raise InputError(f"{path}: a workload of Batsim {other}, and this is a Batsim {version}; {advice}")
    return msgspec.structs.replace(load_workload(path, name, keep_source=True), path=str(path.absolute()))


# Our engine in the place of a Batsim 5: from its options to its output files.


class Batsim5Inputs(StandinInputs, frozen=True, kw_only=True):
    """What Batsim 5's command line says about a simulation."""

    energy: bool = False
    machine_states: bool = False  # whether their trace is written
    pstate_changes: bool = False


class Peer(msgspec.Struct, frozen=True):
    """Who decides: where it is, the text for it, and whether it is a library."""

    place: str
    text: str
    is_library: bool


def execution_context(peer: Peer, prefix: str) -> str:
    """Batsim 5's execution context, as JSON."""
    options = {"socket_endpoint": "" if peer.is_library else peer.place, "export_prefix": prefix}
    return json.dumps(options, separators=(",", ":"))


def run_standin5(
    inputs: Batsim5Inputs, peer: Peer, prefix: str, *, schema: str | None = None, timeout: float = 0.0
) -> None:
    """Simulate what Batsim 5's options say, with the decisions of a process or a library, and write its files.

    Raises:
        ConfigError: if an input cannot be used or the files cannot be written.
        DecisionError: as `decision.batsim.decision_component.ask_peer`.
    """
    from decision.batsim.decision_component import ask_peer
    from decision.batsim.zeromq import check_endpoint
    from decision.engine.batsim5 import Batsim5Engine
    from decision.engine.batsim_words import own_facts

    began = time.perf_counter()
    if not peer.is_library:
        check_endpoint(peer.place)  # before all that takes longer
    writable_folder(Path(f"{prefix}x").parent)
    workloads = [_workload(path, f"w{number}", 5) for number, path in enumerate(inputs.workloads)]
    names = {f"ee{number}": path for number, path in enumerate(inputs.events)}
    events = [event for name, path in names.items() for event in load_texts(path, name)]
    for host, role in inputs.roles.items():
        if role not in ("master", "storage", "compute_node"):
            raise ConfigError(f"-r {host} {role}: there is no role {role!r}; use master, storage or compute_node")
    engine = Batsim5Engine(
        inputs.load_platform(workloads, energy=inputs.energy, by_numbers=True),
        workloads,
        sorted(events, key=lambda event: event.timestamp),
        EngineOptions(energy=inputs.energy, rules=V5),
        lists={name: str(path.absolute()) for name, path in names.items()},
        facts=own_facts(sys.argv, execution_context(peer, prefix)),
    )

    def keep(record: RunRecord, deciding: float) -> None:
        write_run_of_5(
            prefix,
            record,
            own_facts().version,
            machine_states=inputs.machine_states,
            pstate_changes=inputs.pstate_changes,
            seconds=(deciding, time.perf_counter() - began),
        )
        forget_run(Path(f"{prefix}x").parent)

    ask_peer(engine, peer.place, peer.text, keep, library=peer.is_library, schema=schema, timeout=timeout)
