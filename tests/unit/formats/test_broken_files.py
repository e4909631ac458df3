"""Each broken file is refused with one clear line: where, what, and how to mend it."""

import re
from functools import partial
from pathlib import Path

import pytest

from decision.formats import load_events, load_platform, load_swf, load_workload
from decision.model.errors import InputError

BROKEN = Path(__file__).parent / "broken"
READERS = {
    ".json": load_workload,
    ".xml": partial(load_platform, energy=True),
    ".swf": load_swf,
    ".txt": load_events,
}

# each line is a file's name and the rest of its message
LINES = BROKEN.with_name("broken_messages.txt").read_text().splitlines()
MESSAGES = {match[0]: line.removeprefix(match[0]) for line in LINES if (match := re.match(r"\w+\.\w+", line))}


@pytest.mark.parametrize("name", MESSAGES)
def test_a_broken_file_is_refused_with_one_clear_line(name: str) -> None:
    path = BROKEN / name
    with pytest.raises(InputError) as caught:
        READERS[path.suffix](path)
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
