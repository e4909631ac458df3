"""Each broken file is refused with one clear line: where, what, and how to mend it."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from decision.files import load_events, load_oar, load_platform, load_swf, load_workload
from decision.model.errors import InputError

BROKEN = Path(__file__).parent / "broken"
READERS = {
    ".json": load_workload,
    ".xml": partial(load_platform, energy=True),
    ".swf": load_swf,
    ".csv": load_oar,
    "oar_.json": load_oar,
    ".txt": load_events,
}

# each line is a file's name and the rest of its message
LINES = BROKEN.with_name("broken_messages.txt").read_text().splitlines()
MESSAGES = {match[0]: line.removeprefix(match[0]) for line in LINES if (match := re.match(r"\w+\.\w+", line))}


@pytest.mark.parametrize("name", MESSAGES)
def test_a_broken_file_is_refused_with_one_clear_line(name: str) -> None:
    path = BROKEN / name
    with pytest.raises(InputError) as caught:
        READERS[("oar_" if name.startswith("oar_") else "") + path.suffix](path)
    assert str(caught.value) == f"{path}{MESSAGES[name]}"


def test_every_broken_file_has_its_message() -> None:
    assert {path.name for path in BROKEN.iterdir()} == MESSAGES.keys()


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_a_missing_file_is_named(reader, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere: cannot be read \(No such file or directory\); check the path"):
        reader(tmp_path / "nowhere")


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_a_folder_is_no_file(reader, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot be read \(Is a directory\)"):
        reader(tmp_path)


@pytest.mark.parametrize("name", ["log.swf", "jobs.csv", "workload.json"])
@pytest.mark.parametrize("beginning", [b"", b"1 ", b'{"jobs": ['], ids=["zeros", "number", "json"])
def test_a_line_of_a_gigabyte_is_refused_before_it_fills_the_memory(
    name: str, beginning: bytes, tmp_path: Path, run_limited: Callable[[str], str]
) -> None:
    path = tmp_path / name
    with path.open("wb") as file:
        file.write(beginning)
        file.truncate(1 << 30)  # a hole, which takes no space on the disk
    message = run_limited(f"load_any(Path({str(path)!r}))")
    assert re.fullmatch(rf"{re.escape(str(path))}, line 1: longer than [\d,]+ bytes; is it the right file\?\n", message)


@pytest.fixture
def run_limited() -> Callable[[str], str]:
    """Runs a statement that must be refused, in a process of at most 2 GB, and gives its error."""
    program = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))\n"
        "from pathlib import Path\n"
        "from decision.experiments.conversion import load_any\n"
        "from decision.model.errors import InputError\n"
        "try: {}\n"
        "except InputError as error: print(error)\n"
    )

    def run(statement: str) -> str:
        limited = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # each of its threads would reserve memory
        command = [sys.executable, "-c", program.format(statement)]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env=limited).stdout

    return run
