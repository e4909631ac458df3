"""Ctrl-C while modules are loaded, which is most of a command's first second."""

import subprocess
import sys

import pytest

CODE = """
import os, signal, sys

_, module, becomes, *command = sys.argv
sys.argv[1:] = command

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            sys.meta_path.remove(self)
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except KeyboardInterrupt:
                if becomes == "raised":
                    raise
                raise ImportError("cannot load half of it")  # what compiled modules make of it

sys.meta_path.insert(0, Interrupting())
from decision.cli import main
main()
"""


@pytest.mark.parametrize("becomes", ["raised", "another error"])
@pytest.mark.parametrize("module", ["decision.cli.app", "rich.console", "decision.experiments.run", "numba"])
def test_it_ends_with_one_line(module, becomes, root, tmp_path):
    command = ["run", "-p", "toy", "-w", "toy", "--policy", "easy", "-o", str(tmp_path)]
    call = [sys.executable, "-c", CODE, module, becomes, *command]
    done = subprocess.run(call, cwd=root, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")
