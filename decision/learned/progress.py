"""`EpisodeProgress`: what has happened in an episode so far, which rewards and metrics are computed from."""

from decision.compiling.bundle import F8, I4, U8, Bundle, Float, Int
from decision.compiling.jit import kernel


class EpisodeProgress(Bundle):
    """One environment's progress. S steps at most, R rows of the trace, P parameters of the reward."""

    first_row: Int  # row of the trace with which the episode began
    nb_arrived: Int  # jobs so far
    nb_placed: Int  # jobs started so far
    nb_steps: Int  # choices so far
    terminated: Int  # 1 once enough jobs were placed, and nothing is to come
    truncated: Int  # 1 once it was cut off: by time, steps, arrivals, a horizon, or because nothing can happen any more
    last_row: Int  # one past the last row of the trace that may come
    timed: Int  # 1 once the engine was asked to stop at ends_at
    refused_plan: Int  # 1 once a plan could not be carried out
    nb_switched: Int  # servers that were asked to wake or to sleep since counted_from
    nb_hidden: Int  # jobs that are too late to end in time, and leave with this decision
    total_reward: Float  # sum of rewards
    began: Float  # seconds: when the episode began
    used: Float  # core-seconds in use
    waited: Float  # job-seconds in the queue
    loaded: Float  # core-seconds of requested work in the queue, times seconds
    unseen: Float  # job-seconds in the queue and outside of the window
    partial: Float  # seconds in which some job was outside of the window
    placed_wait: Float  # seconds waited by the jobs that were placed
    slowdown: Float  # sum of their bounded slowdowns
    joules: Float  # of all hosts since the episode began; 0 where energy is not simulated
    # and of the present instant
    load: Float  # core-seconds of requested work in the queue
    waiting: Float  # seconds waited so far by the jobs in the queue
    most_queued: Float  # jobs: the longest queue so far
    most_waiting: Float  # seconds: the largest waiting so far
    # and of the episode
    baseline_slowdown: Float  # mean bounded slowdown, had the scheduler's baseline action been taken always
    ends_at: Float  # seconds: when the episode is cut off, inf where it is not
    # and of the jobs that were placed
    work: Float  # core-seconds that they really run
    last_end: Float  # seconds: when the last of them ends
    # and of servers, where energy is simulated
    counted_from: Float  # seconds: from when on they are counted
    idle_servers: Float  # server-seconds in which all of a server was awake and nothing ran on it
    wasted: Float  # joules of these, and of servers that woke or fell asleep
    # and of jobs, where it counts what they are worth
    earned: Float  # of the jobs that ended
    violated: (
        Float  # value of the jobs that ended after their deadlines, or left because they could not end before them
    )
    word: U8  # (1,) the next word of its random numbers
    actions: I4  # (S,) choices so far
    runtime: F8  # (R,) seconds that each job of the trace really runs
    parameters: F8  # (P,) `ChoosingScheduler.reward_parameters`


@kernel
def is_over(progress):
    """Whether the episode has ended."""
    return progress.terminated == 1 or progress.truncated == 1


@kernel
def end_episode(progress, terminates):
    """The episode ends: it terminates, or is cut off."""
    if terminates:
        progress.terminated = 1
    else:
        progress.truncated = 1


@kernel
def mean_slowdown(progress):
    """Mean bounded slowdown of the jobs that were placed."""
    return progress.slowdown / max(progress.nb_placed, 1)
