"""What predictors learn from: the jobs of a log with the times at which their run times became known."""

import os

import numpy as np

from decision.estimates.history import History

from .swf import labels, read_log, requested_sizes

REQUESTED_TIME = 9  # field of the standard, counted from 1
_SUBMIT, _WAIT, _RUN, _USER = 1, 2, 3, 11


def load_history(path: str | os.PathLike[str], time_field: int = REQUESTED_TIME) -> History:
    """Read the usable jobs of an SWF log.

    A job ends its waiting time and its run time after its submission. A waiting time that is unknown is taken to be
    none: the run time is then known somewhat earlier than it was. An unknown requested time is no walltime, rather
    than the run time, which would give it away.

    Args:
        path: the log.
        time_field: the field with the requested time, counted from 1; 9 in the standard, others in some logs.

    Raises:
        InputError: if the file cannot be read.
    """
    table, _, _ = read_log(path)
    requested = table[:, time_field - 1]
    return History(
        user=labels(table[:, _USER]),
        size=requested_sizes(table).astype(np.int64),
        walltime=np.where(requested > 0, requested, np.inf),
        submit=table[:, _SUBMIT],
        end=table[:, _SUBMIT] + np.maximum(table[:, _WAIT], 0) + table[:, _RUN],
        runtime=table[:, _RUN],
    )
