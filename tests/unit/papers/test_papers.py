"""What all papers share: campaigns, commands that register themselves, and a README in each folder."""

import ast
import re
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from decision import papers
from decision.cli.app import app
from decision.model.errors import RunsFailedError
from decision.papers.campaign import Campaign, Part, Parts, ResultTable, Shown

FOLDERS = [path.parent for path in sorted(Path(papers.__file__).parent.glob("*/__init__.py"))]


class Square(Part, frozen=True, kw_only=True):
    experiment = "squares"

    number: int

    @property
    def file(self):
        return self.folder / f"{self.number}.txt"


def square(part):
    if part.number < 0:
        raise ValueError("below 0")
    part.file.write_text(str(part.number**2))


def squares(budget, folder):
    return [Square(budget=budget, seed=0, folder=folder, number=number) for number in budget]


def show(asked):
    rows = [(str(part.number), part.file.read_text()) for part in asked.done]
    return Shown((ResultTable("Squares", ("n", "its square"), rows),) if rows else (), {"n.txt": b"n"})


CAMPAIGN = Campaign(
    {"smoke": (2, 3), "standard": (2, 3, 4)}, squares, square, show, lambda numbers: f"few ({len(numbers)})"
)


def test_a_campaign_leaves_its_table_and_repeats_nothing(tmp_path):
    told = []
    parts = Parts(tmp_path, progress=lambda done, of: told.append((done, of)))
    found = CAMPAIGN.reproduce(parts)
    folder = tmp_path / "smoke"
    table = "## Squares\n\n| n | its square |\n|---|---|\n| 2 | 4 |\n| 3 | 9 |\n"
    assert (folder / "table.md").read_text() == table
    assert (folder / "n.txt").read_text() == "n"
    assert found.notes.splitlines() == [
        f"{folder}: table.md, n.txt; 2 of 2 parts are finished",
        "smoke shows that all runs: so few (2) say nothing else",
    ]
    assert told == [(1, 2), (2, 2)]
    assert CAMPAIGN.reproduce(parts) == found
    assert len(told) == 2


def test_what_is_finished_is_shown_and_nothing_is_done(tmp_path):
    assert CAMPAIGN.reproduce(Parts(tmp_path), "standard", only_finished=True) == (
        (),
        f"{tmp_path / 'standard'}: 0 of 3 parts are finished",
        False,
    )
    assert not any(tmp_path.iterdir())
    CAMPAIGN.reproduce(Parts(tmp_path), "standard")
    (tmp_path / "standard" / "3.txt").unlink()
    shown = CAMPAIGN.reproduce(Parts(tmp_path), "standard", only_finished=True)
    assert [row[0] for row in shown.tables[0].rows] == ["2", "4"]
    assert shown.notes == f"{tmp_path / 'standard'}: table.md, n.txt; 2 of 3 parts are finished"


def test_a_part_that_fails_ends_it_after_the_others(tmp_path):
    failing = CAMPAIGN._replace(budgets={"smoke": (-1, 5)})
    with pytest.raises(RunsFailedError, match="1 of 2 runs"):
        failing.reproduce(Parts(tmp_path))
    assert (tmp_path / "smoke" / "5.txt").read_text() == "25"


def test_where_a_part_leaves_its_file_does_not_change_its_result():
    here, there = (Square(budget=(1,), seed=0, folder=Path(name), number=1) for name in ("a", "b"))
    assert here.definition() == there.definition() == {"experiment": "squares", "budget": (1,), "seed": 0, "number": 1}
    assert msgspec.json.encode(here.definition())


def test_another_package_adds_a_command(tmp_path, monkeypatch):
    info = tmp_path / "theirs-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[decision.papers]\ntheir-paper = their_paper:their_command\n")
    (tmp_path / "their_paper.py").write_text(
        "def their_command(times: int = 2) -> None:\n    'What they found.'\n    print('found ' * times)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert "What they found." in CliRunner().invoke(app, ["reproduce", "--help"]).stdout
    assert CliRunner().invoke(app, ["reproduce", "their-paper", "--times", "3"]).stdout == "found found found \n"


def is_of(point, paper):
    """Whether the command of an entry point runs what is in the folder of a paper."""
    tree = ast.parse(Path(import_module(point.module).__file__).read_text())
    command = next(each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == point.attr)
    home = f"decision.papers.{paper}"
    return point.module == f"{home}.commands" or re.search(rf"\b{home}\b", ast.unparse(command)) is not None


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_reader_finds_every_file_and_command_of_a_paper(root, folder):
    text = (folder / "README.md").read_text()
    named = re.findall(r"`(decision/[^`]+)`", text)
    assert [name for name in named if not (root / name).exists()] == []
    cells = re.findall(r"`((?:decision|tests)/[^`]+)`: ((?:`\w+`(?:, )?)+)", text)
    parts = [(file, name) for file, names in cells for name in re.findall(r"\w+", names)]
    assert [part for part in parts if not re.search(rf"(def|class) {part[1]}\b", (root / part[0]).read_text())] == []
    elements = text.partition("| element of the paper | where | test |\n|---|---|---|\n")[2].partition("\n\n")[0]
    assert [
        row for row in elements.splitlines() if not re.search(r"\| `decision/\S+ .*\| `tests/\S+ `test_", row)
    ] == []
    modules = {path.name for path in folder.glob("*.py")} - {"__init__.py", "commands.py"}
    commands = {point.name for point in entry_points(group="decision.papers") if is_of(point, folder.name)}
    if folder.name != "own":  # where each command has a module of its name
        assert {name for name in modules if f"`{name}`" not in text} == set()
    shown = re.findall(r"decision reproduce ([a-z0-9-]+)", text) + re.findall(r"^\| `([a-z-]+)` \|", text, re.M)
    assert set(shown) == commands != set()
