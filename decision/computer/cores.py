"""How much may be done at a time: cores and memory."""

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")
_WORKER = 400e6  # bytes that a process takes in which policies run


def available_cores() -> int:
    """Cores that this process may use: those of its affinity, and no more than its control group's quota."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([cores, *(math.ceil(quota) for quota in _quotas())]))


def available_workers() -> int:
    """Processes that work at a time: one for each core, as far as memory goes."""
    room = available_memory() / _WORKER
    return max(1, available_cores() if room >= available_cores() else int(room))


def available_memory() -> float:
    """Bytes that this process may still take without swapping; inf where the system does not say."""
    room = [math.inf, *_rooms()]
    with suppress(OSError, StopIteration, ValueError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        room.append(1024.0 * int(next(line.split()[1] for line in lines if line.startswith("MemAvailable:"))))
    with suppress(ImportError, OSError, ValueError):
        from resource import RLIM_INFINITY, RLIMIT_AS, getrlimit

        limit, _ = getrlimit(RLIMIT_AS)
        if limit != RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            room.append(float(limit - pages * os.sysconf("SC_PAGE_SIZE")))
    return max(0.0, min(room))


def _quotas() -> Iterator[float]:
    """Cores that each control group grants, of version 2 and 1; none where there is no limit."""
    for group in _groups(""):
        with suppress(OSError, ValueError):  # "max" where there is no limit
            quota, period = (group / "cpu.max").read_text().split()
            yield int(quota) / int(period)
    for group in _groups("cpu"):
        with suppress(OSError, ValueError):
            limit = int((group / "cpu.cfs_quota_us").read_text())
            if limit > 0:
                yield limit / int((group / "cpu.cfs_period_us").read_text())


def _rooms() -> Iterator[float]:
    """Bytes that each control group still grants; the system takes back files that it keeps in memory."""
    for name, limit, usage, inactive in (
        ("", "memory.max", "memory.current", "inactive_file"),
        ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        for group in _groups(name):
            with suppress(OSError, ValueError):
                free = int((group / limit).read_text()) - int((group / usage).read_text())
                lines = [line.split() for line in (group / "memory.stat").read_text().splitlines()]
                yield float(free + sum(int(value) for key, value in lines if key == inactive))


def _groups(controller: str) -> Iterator[Path]:
    """The folders of this process's control group and of those above it; "" for version 2."""
    with suppress(OSError, ValueError):
        for line in _OWN.read_text().splitlines():
            _, controllers, own = line.split(":", 2)
            if controller not in controllers.split(",") or (not controller and controllers):
                continue
            top = next((place for place in (_GROUPS / controllers, _GROUPS / controller) if place.is_dir()), _GROUPS)
            inside = Path(own.lstrip("/"))
            yield from dict.fromkeys([top / inside, *(top / each for each in inside.parents), top])
