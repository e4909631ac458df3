"""How much may be done at a time: cores and memory."""

import math
import os
from contextlib import suppress
from pathlib import Path


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def available_memory() -> float:
    """Bytes that this process may still take without swapping; inf where the system does not say."""
    room = [math.inf]
    with suppress(OSError, StopIteration, ValueError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        room.append(1024.0 * int(next(line.split()[1] for line in lines if line.startswith("MemAvailable:"))))
    with suppress(OSError, ValueError):  # a container's limit; "max" where there is none
        group = Path("/sys/fs/cgroup")
        limit = int((group / "memory.max").read_text())
        room.append(float(limit - int((group / "memory.current").read_text())))
    with suppress(ImportError, OSError, ValueError):
        from resource import RLIM_INFINITY, RLIMIT_AS, getrlimit

        limit, _ = getrlimit(RLIMIT_AS)
        if limit != RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            room.append(float(limit - pages * os.sysconf("SC_PAGE_SIZE")))
    return max(0.0, min(room))
