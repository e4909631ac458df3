"""What tests with other programs share."""

import os
import shutil
import subprocess
import sys

import pytest


@pytest.fixture(scope="session")
def python() -> str:
    """A Python that has SimGrid's bindings: the tests' own, or the system's."""
    for candidate in (sys.executable, shutil.which("python3", path=os.defpath)):
        if candidate and subprocess.run([candidate, "-c", "import simgrid"], capture_output=True).returncode == 0:
            return candidate
    pytest.skip("needs SimGrid's bindings for Python: apt install python3-simgrid")
