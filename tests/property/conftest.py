"""Properties of policies use the toys and the slow twins of their unit tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "policies"))
