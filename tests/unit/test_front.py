"""The texts at the front say what the package says."""

import re
import shlex
import tomllib
from importlib import metadata

import decision
from decision.model.errors import DISTRIBUTION, how_to_install


def test_the_distribution_is_named_alike_everywhere(root):
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert project["name"] == DISTRIBUTION
    assert {"analysis", "learn"} <= set(project["optional-dependencies"])


def test_what_an_extra_needs_is_named_since_the_package_need_not_be_on_an_index(root, monkeypatch):
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    named = shlex.split(how_to_install("analysis"))
    assert named[:2] == ["pip", "install"]
    assert {re.split("[<>=]", each)[0] for each in named[2:]} == {"matplotlib", "pandas"}
    assert len(named[2:]) == len(project["optional-dependencies"]["analysis"])
    monkeypatch.setattr(metadata, "requires", lambda name: metadata.distribution("not-there"))
    assert shlex.split(how_to_install("learn")) == ["pip", "install", f"{root}[learn]"]


def test_the_citation_has_the_packages_version(root):
    assert f"\nversion: {decision.__version__}\n" in (root / "CITATION.cff").read_text()


def test_the_reference_documents_every_public_name(root):
    page = (root / "docs/reference/python.md").read_text()
    named = {line.rpartition(".")[2] for line in page.splitlines() if line.startswith(":::")}
    named |= set(re.findall(r"`d\.(\w+)`", page))
    assert set(decision.__all__) - {"__version__"} <= named


def test_commands_of_the_guides_write_into_folders_of_their_own(root):
    """What one types leaves nothing where another command of the pages writes: nor is one folder inside another."""
    pages = [root / "README.md", *sorted((root / "docs/guide").glob("*.md"))]
    written = {"advise": "out/advise", "batsim5": "out", "compare": "out/compare", "run": "out", "train": "out"}
    folders: dict[str, set[str]] = {}
    for page in pages:
        for language, block in re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
            if language not in ("", "bash"):
                continue
            for line in block.replace("\\\n", " ").splitlines():
                words = line.split("#")[0].split()
                if (
                    words[:1] != ["decision"]
                    or words[1] not in written
                    or "..." in words
                    or {"--share", "--resume"} & {*words}
                ):
                    continue
                option = "-e" if words[1] == "batsim5" else "-o"
                named = words[words.index(option) + 1] if option in words else written[words[1]]
                folders.setdefault(named.rstrip("/"), set()).add(" ".join(words))
    assert len(folders) > 30
    assert {folder: lines for folder, lines in folders.items() if len(lines) > 1} == {}
    assert [(a, b) for a in folders for b in folders if b.startswith(f"{a}/")] == []
