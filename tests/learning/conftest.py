"""What learning tests share. They need torch and gymnasium."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("gymnasium")
