"""`predictors.LastTwo` as kernels, for policies: the mean of the run times of a user's last two ended jobs."""

from decision.compiling.jit import kernel

from .habits import BEFORE_LAST, JOBS, LAST_RUN, new_row_of, row_of, user_key


@kernel
def predict_last_two(memory, user, walltime):
    """Seconds: the mean of the two; the walltime for users with fewer, and for jobs of nobody (-1)."""
    habit = memory.habits[row_of(memory, user_key(user))]
    return (habit[LAST_RUN] + habit[BEFORE_LAST]) / 2.0 if user >= 0 and habit[JOBS] >= 2.0 else walltime


@kernel
def observe_last_two(memory, user, runtime):
    """Remember the run time (seconds) of a user's job that has ended, forget the one before the last."""
    if user >= 0:
        habit = memory.habits[new_row_of(memory, user_key(user))]
        habit[JOBS] += 1.0
        habit[BEFORE_LAST] = habit[LAST_RUN]
        habit[LAST_RUN] = runtime
