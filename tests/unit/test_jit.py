"""The cache of compiled kernels."""

import os
import subprocess
import sys
from pathlib import Path

import numba

from decision import jit

PACKAGE = {
    "__init__.py": "",
    "jit.py": Path(jit.__file__).read_text(),
    "low.py": "from decision.jit import kernel\n\n@kernel\ndef low(x):\n    return x + 1\n",
    "high.py": "from .jit import kernel\nfrom .low import low\n\n@kernel\ndef high(x):\n    return 2 * low(x)\n",
    "other.py": "from decision.jit import kernel\n\n@kernel\ndef other(x):\n    return x\n",
}
PROGRAM = """
from decision.high import high
from decision.other import other
from decision.jit import is_warm
print(int(is_warm(high)), int(is_warm(other)), high(1), other(1))
"""


def test_numbas_own_settings_stay_as_they_are() -> None:
    assert os.environ.get("NUMBA_CACHE_DIR", "") == numba.config.CACHE_DIR


def test_a_changed_callee_recompiles_its_callers_alone(tmp_path: Path) -> None:
    """A kernel's code contains that of the kernels that it calls, in whatever module."""
    for name, text in PACKAGE.items():
        (tmp_path / "decision" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "decision" / name).write_text(text)
    assert _run(tmp_path) == "0 0 4 1"
    assert _run(tmp_path) == "1 1 4 1"
    low = tmp_path / "decision" / "low.py"
    low.write_text(low.read_text().replace("x + 1", "x + 2"))
    assert _run(tmp_path) == "0 1 6 1"


def test_machine_code_that_nothing_has_used_for_a_month_is_removed(tmp_path: Path) -> None:
    old, recent = (tmp_path / "cache" / "decision.low" / name for name in ("0123456789abcdef", "fedcba9876543210"))
    for folder in (old, recent):
        folder.mkdir(parents=True)
    os.utime(old, (0, 0))
    for name, text in PACKAGE.items():
        (tmp_path / "decision" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "decision" / name).write_text(text)
    _run(tmp_path)
    assert not old.exists()
    assert recent.exists()


def _run(folder: Path) -> str:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": str(folder)}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"  # Python's own cache tells changes by their second and size
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
