"""What users are told while something runs: the logger ``decision``, of Python's `logging`.

Warnings are next to their results. At INFO there is what is read, compiled, run and written; a notebook shows that with
``logging.basicConfig(); logging.getLogger("decision").setLevel("INFO")``, the command line with ``--verbose``.
"""

import functools
import logging

log = logging.getLogger("decision")


@functools.cache
def warn_once(text: str) -> None:
    """Warn in one line, once in a process, however many policies run the same workload."""
    log.warning("%s", text)
