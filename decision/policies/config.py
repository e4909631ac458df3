"""What a composed policy is to the kernels: the codes of its slots, and its numbers."""

import math
from enum import IntEnum
from typing import NamedTuple


class Order(IntEnum):
    """In which order jobs are looked at; ties are broken by arrival."""

    FCFS = 0
    LCFS = 1
    SJF = 2
    LJF = 3
    SAF = 4
    LAF = 5
    SQF = 6
    LQF = 7
    F1 = 8
    F2 = 9
    F3 = 10
    F4 = 11
    RANDOM = 12
    HVF = 13
    QOS = 14
    DENSITY = 15
    EDF = 16
    # from here on ranks change with time
    WFP3 = 17
    UNICEP = 18
    MULTIFACTOR = 19


class Backfill(IntEnum):
    """What happens behind a job that does not fit."""

    NONE = 0
    FIRST_FIT = 1
    EASY = 2
    CONSERVATIVE = 3


class Allocation(IntEnum):
    """Which of the free hosts a job gets; never whether it gets them."""

    LOWEST = 0
    CONTIGUOUS = 1
    BEST_FIT = 2
    SCATTERED = 3
    TREE = 4
    SLURM_TREE = 5
    PACK = 6
    HOPS = 7


class Power(IntEnum):
    """When idle hosts are put to sleep."""

    NEVER = 0
    IDLE_TIMEOUT = 1
    KEEP_AWAKE = 2


class StartHosts(IntEnum):
    """Which hosts a job may be given."""

    AWAKE = 0
    BOOKED = 1


class Suspend(IntEnum):
    """Which running jobs give their hosts to a waiting one that does not fit: those with less of it."""

    NEVER = 0
    VALUE = 1
    DENSITY = 2


AUTO = -1.5  # PolicyConfig.guard, below 0: minus how many times the longest wait under FCFS with EASY may be waited


class PolicyConfig(NamedTuple):
    """A composed policy as numbers; `Memory` has them too."""

    order: int = int(Order.FCFS)
    backfill: int = int(Backfill.NONE)
    allocation: int = int(Allocation.LOWEST)
    power: int = int(Power.NEVER)
    seed: int = 0
    keep_awake: int = 0  # hosts
    start: int = int(StartHosts.AWAKE)
    promises: int = 0  # 1 to remember when EASY first promises each head to start
    backfill_order: int = -1  # the Order of the jobs that EASY looks at behind its head; -1: that of the queue
    suspend: int = int(Suspend.NEVER)
    age_weight: float = 1000.0
    size_weight: float = 1000.0
    max_age: float = 7 * 86400.0  # seconds at which age counts in full
    idle_timeout: float = 300.0  # seconds
    wake_time: float = 0.0  # seconds to wake a host
    doze_time: float = 0.0  # seconds to put a host to sleep
    guard: float = math.inf  # seconds after which a waiting job is guarded; below 0 as AUTO
    patience: float = 0.0  # seconds that a job waits before a server is woken for it
