"""Warnings to users, next to their results."""

import functools
import logging

log = logging.getLogger(__name__)


@functools.cache
def warn_once(text: str) -> None:
    """Warn in one line, once in a process, however many policies run the same workload."""
    log.warning("%s", text)
