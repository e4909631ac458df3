"""What tests of all layers share."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SHARED = ROOT.parent / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of recordings and logs beside the checkout, which not everybody has."""
    if not SHARED.is_dir():
        pytest.skip(f"needs the recordings and logs of {SHARED.name}/, beside the checkout")
    return SHARED


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT
