"""Processes that do tasks, and that end with the process that started them, however that ends."""

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import wait

from decision.policies.deadline import ignore_interrupt

_PR_SET_PDEATHSIG = 1  # of Linux


@contextmanager
def workers(processes: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that do tasks and end with the block, however it is left.

    Signals to the whole group, as a terminal and a batch system send them, are for the parent alone.
    """
    # fresh processes: a fork would copy the threads' locks of a progress display
    before = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), initializer=_begin)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        children = set(multiprocessing.active_children()) - before
        for child in children:
            child.kill()
        for child in children:  # what the system still does for it, such as to write, is done then
            child.join()


def _begin() -> None:
    signal.signal(signal.SIGINT, ignore_interrupt)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if sys.platform == "linux":  # at once, where the thread waits until a compiled function returns
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
