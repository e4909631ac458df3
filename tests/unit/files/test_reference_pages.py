"""The site's pages on files and on JSON name all that we write and read."""

import json
import re

import pytest

from decision.files import load_events, load_workload
from decision.files.outputs_write import ENERGY_HEADER, JOB_HEADER, PSTATE_HEADER, STATE_HEADER
from decision.files.profiles import FOREIGN_TYPES, KNOWN_TYPES
from decision.model.workload import FORWARDED


@pytest.fixture
def page(root):
    return lambda name: (root / f"docs/reference/{name}.md").read_text()


@pytest.mark.parametrize("header", [JOB_HEADER, STATE_HEADER, ENERGY_HEADER, PSTATE_HEADER])
def test_each_column_of_batsims_files_is_described(page, header):
    said = set(re.findall(r"`(\w+)`", page("files")))
    assert set(header.strip().split(",")) <= said


def test_each_field_of_the_summary_is_described(page, root):
    (session, *_) = sorted((root / "tests/golden/sessions").glob("**/*_schedule.csv"))
    said = set(re.findall(r"`(\w+)`", page("files")))
    assert set(session.read_text().splitlines()[0].split(",")) <= said


def test_each_type_of_profile_and_event_is_described(page):
    said = set(re.findall(r"`(\w+)`", page("json")))
    assert {*KNOWN_TYPES, *FOREIGN_TYPES, *FORWARDED, "machine_available", "machine_unavailable"} <= said


def test_the_examples_are_read(page, tmp_path):
    workload, events = re.findall(r"^```json\n(.*?)^```$", page("json"), re.DOTALL | re.MULTILINE)
    (tmp_path / "w.json").write_text(workload)
    (tmp_path / "e.txt").write_text(events)
    assert len(load_workload(tmp_path / "w.json").jobs) == len(json.loads(workload)["jobs"])
    assert len(load_events(tmp_path / "e.txt", supply=True)) == len(events.splitlines())
