"""A case in its folder: written, and loaded again.

``CASE`` has ``case.json``, the ``slurm.conf`` as it was given (with what it includes), and ``platform.xml`` and
``workload.json`` for all other commands.
"""

from pathlib import Path

import msgspec

from decision.formats.files import read_bytes, write_files
from decision.formats.json_text import json_bytes
from decision.formats.platform_write import write_platform
from decision.formats.workload_write import workload_lines
from decision.model.errors import InputError

from .case import VERSION, Case
from .conf import Conf
from .engine_inputs import case_platform, case_workload

CASE_FILE = "case.json"


def write_case(case: Case, conf: Conf, folder: Path) -> None:
    """Write a case to a folder, all of its files or none.

    Raises:
        ConfigError: if the folder cannot be written.
    """
    contents = {folder / CASE_FILE: [msgspec.json.format(json_bytes(case), indent=1)]}
    contents[folder / "workload.json"] = list(workload_lines(case_workload(case)))
    contents |= _conf_copies(conf, folder)
    write_files(contents)
    write_platform(folder / "platform.xml", case_platform(case))


def _conf_copies(conf: Conf, folder: Path) -> dict[Path, list[bytes]]:
    first, *others = conf.files
    copies = {folder / "slurm.conf": [Path(first).read_bytes()]}
    for name in others:
        copies[folder / Path(name).name] = [Path(name).read_bytes()]
    return copies


def load_case(folder: Path) -> Case:
    """A case from its folder.

    Raises:
        InputError: if it is none, or made by another version.
    """
    path = folder / CASE_FILE
    if not path.is_file():
        raise InputError(f"{folder}: there is no {CASE_FILE} in it; make it with decision slurm read")
    try:
        case = msgspec.json.decode(read_bytes(path), type=Case)
    except msgspec.DecodeError as error:
        raise InputError(f"{path}: not a case of this version ({error}); make it again: decision slurm read") from None
    if case.version != VERSION:
        raise InputError(f"{path}: version {case.version}, not {VERSION}; make it again: decision slurm read")
    asked = {name for job in case.jobs for name in job.partition.split(",")} - {p.name for p in case.partitions}
    listed = {name for partition in case.partitions for name in partition.nodes} - {node.name for node in case.nodes}
    if unknown := asked | listed:
        raise InputError(f"{path}: it has no partition or node {min(unknown)!r}; make it again: decision slurm read")
    return msgspec.structs.replace(case, folder=str(folder))
