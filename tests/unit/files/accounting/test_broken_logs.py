"""Every reader of logs against files that are broken as a whole, as those of `test_broken_files`."""

import bz2
import gzip
import lzma
from pathlib import Path

import pytest
from helpers.trace_samples import FORMATS, SAMPLES

from decision.files import load_workload
from decision.files.accounting.read import TraceOptions
from decision.model.demand import runtimes, sizes, submit_times
from decision.model.errors import InputError
from decision.model.workload import Workload

READERS = {name: FORMATS.get(name, name) for name in SAMPLES if name != "djc"} | {"djc": "csv"}
every = pytest.mark.parametrize("name", READERS)


def read(path: Path, name: str) -> Workload:
    return load_workload(path, options=TraceOptions(format=READERS[name]))


def columns(workload: Workload) -> list[list[float]]:
    return [column.tolist() for column in (submit_times(workload), runtimes(workload), sizes(workload))]


@every
@pytest.mark.parametrize(
    "content",
    [b"", b"\n\n", b"\xff\xfe" + "a log\n".encode("utf-16-le"), bytes(1000), bytes(range(256)) * 20, b"<xml/>\n"],
    ids=["empty", "blank", "utf-16", "zeros", "binary", "xml"],
)
def test_what_is_no_log_is_refused_in_one_line(name: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read(path, name)
    first, *mapping = str(caught.value).splitlines()
    assert first.startswith(str(path))
    assert not mapping or name == "djc"  # a table of unknown columns has a mapping to fill in


@every
def test_a_missing_file_and_a_folder_are_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read(tmp_path / "nowhere.log", name)
    with pytest.raises(InputError, match="Is a directory"):
        read(tmp_path, name)


@every
def test_marks_ends_of_lines_and_packing_change_nothing(name: str, tmp_path: Path) -> None:
    path, data = tmp_path / "log", SAMPLES[name]
    path.write_bytes(data)
    expected = columns(read(path, name))
    variants = {
        "marked": b"\xef\xbb\xbf" + data,
        "windows": data.replace(b"\n", b"\r\n"),
        "unended": data.rstrip(b"\n"),
        "a.gz": gzip.compress(data),
        "misnamed": bz2.compress(data),
        "parted.xz": lzma.compress(data),
    }
    for file, content in variants.items():
        (tmp_path / file).write_bytes(content)
        assert columns(read(tmp_path / file, name)) == expected, file


@every
def test_a_damaged_archive_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress(SAMPLES[name])[:-20])
    with pytest.raises(InputError, match="damaged"):
        read(path, name)


@every
def test_a_text_that_is_no_utf_8_costs_no_job_but_its_own(name: str, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(SAMPLES[name].replace(b"u1", b"u\xe9"))
    try:
        found = read(path, name)
    except InputError as error:  # what JSON must be
        assert name in ("sacct-json", "philly"), error
        return
    assert len(found.jobs) >= 20
