"""What tests of all layers share.

Marks select: ``-m "not slow"`` leaves out what takes more than some seconds, ``-m interop`` runs what needs other
programs (SimGrid, Chromium, pybatsim, Docker's checker; each is skipped where its program is missing). Tests marked
``nightly``, long trainings and whole small budgets of reproductions, run with ``--nightly``.

Property tests draw the same cases in each run, so that a change is judged by what it changes;
``--hypothesis-profile=default`` draws new ones. `helpers.cases` says how many by day, and how many with ``--nightly``.
"""

import gc
from pathlib import Path

import pytest
from helpers import cases
from helpers.golden import ROOT
from hypothesis import settings

SHARED = ROOT.parent / "shared"
settings.register_profile("same-cases", derandomize=True)
settings.load_profile("same-cases")
SLOW = ("learning", "property")  # folders


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of logs and traces next to the checkout, which cannot be published here; skips without it."""
    if not SHARED.is_dir():
        pytest.skip(f"needs the logs and traces of {SHARED.name}/, next to the checkout")
    return SHARED


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--nightly", action="store_true", help="run the tests marked nightly, too")


def pytest_configure(config: pytest.Config) -> None:
    cases.night = config.getoption("--nightly")
    gc.disable()  # until all is collected


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests by their folder, and leave those for the night out by day."""
    if not config.getoption("--nightly"):
        night = [item for item in items if item.get_closest_marker("nightly")]
        config.hook.pytest_deselected(items=night)
        items[:] = [item for item in items if item not in night]
    for item in items:
        if item.get_closest_marker("nightly"):
            item.add_marker(pytest.mark.timeout(0))
        folder = item.path.relative_to(ROOT / "tests").parts[0]
        if folder == "interop":
            item.add_marker("interop")
        if folder in SLOW:
            item.add_marker("slow")


def pytest_collection_finish() -> None:
    """What was imported and collected stays: to look through it again and again took a tenth of the time."""
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(700, 10, 100)  # what kernels and networks leave is large, and most of it stays, too
