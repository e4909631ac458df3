"""What learning tests share. They need torch and gymnasium."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("gymnasium")
from decision.rl.learning import schedulers


@pytest.fixture(scope="module", autouse=True)
def short_validation():
    """Each point of a curve is over a few jobs: over how many is tested elsewhere, and took a sixth of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schedulers, "_SEQUENCES", 4)
        patch.setattr(schedulers, "_JOBS", 120)
        yield
