"""`EpisodeProgress`: what has happened in an episode so far, which rewards and metrics are computed from."""

from decision.compiling.bundle import F8, I4, I8, U8, Bundle
from decision.compiling.jit import kernel

# EpisodeProgress.number
FIRST_ROW = 0  # row of the trace with which the episode began
ARRIVED = 1  # jobs so far
PLACED = 2  # jobs started so far
STEPS = 3  # choices so far
TERMINATED = 4  # 1 once enough jobs were placed, and nothing is to come
TRUNCATED = 5  # 1 once it was cut off: by time, steps, arrivals, a horizon, or because nothing can happen any more
LAST_ROW = 6  # one past the last row of the trace that may come
TIMED = 7  # 1 once the engine was asked to stop at ENDS_AT
REFUSED_PLAN = 8  # 1 once a plan could not be carried out
SWITCHED = 9  # servers that were asked to wake or to sleep since COUNTED
HIDDEN = 10  # jobs that are too late to end in time, and leave with this decision
N_NUMBERS = 11

# EpisodeProgress.total
RETURN = 0  # sum of rewards
BEGAN = 1  # seconds: when the episode began
USED = 2  # core-seconds in use
WAITED = 3  # job-seconds in the queue
LOADED = 4  # core-seconds of requested work in the queue, times seconds
UNSEEN = 5  # job-seconds in the queue and outside of the window
PARTIAL = 6  # seconds in which some job was outside of the window
PLACED_WAIT = 7  # seconds waited by the jobs that were placed
SLOWDOWN = 8  # sum of their bounded slowdowns
JOULES = 9  # of all hosts since the episode began; 0 where energy is not simulated
# and of the present instant
LOAD = 10  # core-seconds of requested work in the queue
WAITING = 11  # seconds waited so far by the jobs in the queue
MOST_QUEUED = 12  # jobs: the longest queue so far
MOST_WAITING = 13  # seconds: the largest WAITING so far
# and of the episode
BASELINE_SLOWDOWN = 14  # mean bounded slowdown, had the scheduler's baseline action been taken always
ENDS_AT = 15  # seconds: when the episode is cut off, inf where it is not
# and of the jobs that were placed
WORK = 16  # core-seconds that they really run
LAST_END = 17  # seconds: when the last of them ends
# and of servers, where energy is simulated
COUNTED = 18  # seconds: from when on they are counted
IDLE_SERVERS = 19  # server-seconds in which all of a server was awake and nothing ran on it
WASTED = 20  # joules of these, and of servers that woke or fell asleep
# and of jobs, where it counts what they are worth
EARNED = 21  # of the jobs that ended
VIOLATED = 22  # value of the jobs that ended after their deadlines, or left because they could not end before them
N_TOTALS = 23


class EpisodeProgress(Bundle):
    """One environment's progress. S steps at most, R rows of the trace, P parameters of the reward."""

    number: I8  # (N_NUMBERS,)
    total: F8  # (N_TOTALS,)
    word: U8  # (1,) the next word of its random numbers
    actions: I4  # (S,) choices so far
    runtime: F8  # (R,) seconds that each job of the trace really runs
    parameters: F8  # (P,) `ChoosingScheduler.reward_parameters`


@kernel
def is_over(progress):
    """Whether the episode has ended."""
    return progress.number[TERMINATED] == 1 or progress.number[TRUNCATED] == 1


@kernel
def mean_slowdown(progress):
    """Mean bounded slowdown of the jobs that were placed."""
    return progress.total[SLOWDOWN] / max(progress.number[PLACED], 1)
