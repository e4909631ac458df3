"""Files in and out: Batsim workloads and events, SWF logs, OAR exports, SimGrid platforms, Batsim's output files.

Readers return frozen facts of `decision.model`; whatever is wrong with a file is one `InputError` that names the file,
the place in it and what to do. Writers write to a temporary file and rename it, so that a file is whole or absent.

Design
------
`workload` finds the reader that a file's content asks for: `batsim_json` (with `profiles`), `swf`, `oar`, and
`accounting` for logs of other batch systems. `simgrid` reads and writes platforms, `platform_check` says what is wrong
in one, `generate` makes inputs of a seed. `events` are Batsim's external events, `outputs_read` and `outputs_write` its
output files, with the ``run.json`` beside them. All go through `text`.

Readers accept what Batsim 4.2.1 accepts and refuse what it refuses, so that a file that loads here also loads there.
They are stricter only where Batsim would hang or crash later: composed profiles that contain themselves, jobs on zero
hosts, switches at zero speed.

A log of a real machine has odd lines: those that no simulation could use are left out and counted. A workload, an
export or a platform was written by a program, so that one wrong value means that it is not what it seems, and the whole
file is refused. Lines longer than any that such a file has are refused before they are in memory.
"""

from decision.files.simgrid.read_platform import load_platform
from decision.files.simgrid.write_platform import write_platform

from .batsim_json import load_json
from .events import load_events
from .oar import load_oar
from .outputs_write import write_run
from .profiles import write_workload
from .swf import load_swf, write_swf
from .workload import load_workload

__all__ = [
    "load_events",
    "load_json",
    "load_oar",
    "load_platform",
    "load_swf",
    "load_workload",
    "write_platform",
    "write_run",
    "write_swf",
    "write_workload",
]
