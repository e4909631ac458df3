"""The texts at the front say what the package says."""

import re
import tomllib

import decision
from decision.model.errors import DISTRIBUTION, how_to_install


def test_the_distribution_is_named_alike_everywhere(root):
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert project["name"] == DISTRIBUTION
    assert {"analysis", "learn"} <= set(project["optional-dependencies"])
    assert how_to_install("learn") == "pip install 'batsim-decision[learn]'"


def test_the_citation_has_the_packages_version(root):
    assert f"\nversion: {decision.__version__}\n" in (root / "CITATION.cff").read_text()


def test_the_reference_documents_every_public_name(root):
    page = (root / "docs/reference/python.md").read_text()
    named = {line.rpartition(".")[2] for line in page.splitlines() if line.startswith(":::")}
    named |= set(re.findall(r"`d\.(\w+)`", page))
    assert set(decision.__all__) - {"__version__"} <= named
