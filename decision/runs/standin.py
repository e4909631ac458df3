"""Our engine in Batsim's place: from Batsim's options to its output files."""

from pathlib import Path

import msgspec

from decision.batsim.wire import check_endpoint
from decision.batsim.zmq_loop import ask_all
from decision.computer.shipped import find_workload
from decision.engine.options import EngineOptions
from decision.formats import load_workload, write_run
from decision.formats.files import read_bytes
from decision.formats.run_facts import forget_run
from decision.formats.workload5 import is_of_5
from decision.model.errors import ConfigError, InputError
from decision.model.workload import Workload

from .engines import engine_that_starts_at_once, make_engine
from .inputs import StandinInputs, read_events, writable_folder


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
    workloads = [_workload(path, f"w{i}") for i, path in enumerate(inputs.workloads)]
    platform = inputs.load_platform(workloads, energy=inputs.options.energy)
    events = read_events(inputs.events, len(platform.hosts), inputs.options.forward_unknown_events)
    engine = make_engine(engine_that_starts_at_once(), platform, workloads, events, inputs.options)
    write_run(prefix, ask_all(engine, endpoint, timeout=timeout))
    forget_run(Path(prefix).parent)


def _workload(path: Path, name: str) -> Workload:
    """The workload under its absolute path, which is what Batsim sends to the decision process."""
    if is_of_5(read_bytes(find_workload(path))):
        advice = "decision workload convert --to 4 converts it"
        raise InputError(f"{path}: a workload of Batsim 5, and this is a Batsim 4; {advice}")
    return msgspec.structs.replace(load_workload(path, name, keep_source=True), path=str(path.absolute()))
