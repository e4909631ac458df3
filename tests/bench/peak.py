"""Peak memory of a program; run as a file, it starts the program that its arguments say and prints the megabytes.

Linux counts what a process had when it started a program as that program's, and what children took together as their
largest one's. So the program is started by a process of its own, which is small and has no other children.
"""

import resource
import subprocess
import sys
from pathlib import Path


def peak_megabytes(command: list[str], folder: Path | None = None) -> float:
    """The most that a program had, in `folder`; its output is dropped."""
    by = [sys.executable, "-S", __file__, *command]
    return float(subprocess.run(by, check=True, capture_output=True, text=True, cwd=folder).stdout)


if __name__ == "__main__":
    subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)
