"""`decision run` from a log's file to the output files, on 10,000 hosts under EASY; prints seconds and peak megabytes.

``python -m bench.stream 10000000`` runs so many jobs; 1,000,000 without a number.
"""

import sys
import tempfile
import time
from pathlib import Path

from decision.files import write_platform

from .inputs import columns, platform
from .peak import peak_megabytes

HOSTS = 10_000
_CHUNK = 100_000  # lines


def write_log(path: Path, nb_jobs: int) -> None:
    """The jobs of `made` as a log, written without a million objects in memory."""
    submit, size, wall, run = columns(nb_jobs, HOSTS, load=0.95, seed=4)
    with path.open("w") as file:
        file.write(f"; MaxProcs: {HOSTS}\n")
        for first in range(0, nb_jobs, _CHUNK):
            some = slice(first, first + _CHUNK)
            rows = zip(*(column[some].tolist() for column in (submit, run, size, wall)), strict=True)
            file.writelines(
                f"{number} {at:.0f} -1 {seconds:.0f} {n} -1 -1 {n} {limit:.0f} -1 1 -1 -1 -1 -1 -1 -1 -1\n"
                for number, (at, seconds, n, limit) in enumerate(rows, first)
            )


def main() -> None:
    """Make the files, run, and print two figures."""
    nb_jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        write_platform(here / "p.xml", platform(HOSTS))
        write_log(here / "log.swf", nb_jobs)
        words = ["run", "-p", "p.xml", "-w", "log.swf", "--policy", "easy", "-o", "out"]
        began = time.perf_counter()
        peak = peak_megabytes([sys.executable, "-m", "decision", *words], here)
        seconds = time.perf_counter() - began
    print(f"{seconds:.3f} {peak:.0f}")


if __name__ == "__main__":
    main()
