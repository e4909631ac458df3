"""What predictors learn from: the jobs of a log or a workload with the times at which their run times became known."""

import os
from pathlib import Path

import numpy as np

from decision.estimates.history import History
from decision.model.demand import runtimes, sizes, submit_times, walltimes

from .swf import labels, read_log, requested_sizes
from .workload_json import load_workload

REQUESTED_TIME = 9  # field of the standard, counted from 1
_SUBMIT, _WAIT, _RUN, _USER = 1, 2, 3, 11


def load_history(path: str | os.PathLike[str], time_field: int = REQUESTED_TIME) -> History:
    """Read the jobs of an SWF log (.swf) or a Batsim workload (else).

    A job of a log ends its waiting time and its run time after its submission. Where the waiting time is unknown,
    and in workloads, it is taken to be none: the run time is then known somewhat earlier than it was.

    Args:
        path: the file.
        time_field: the log's field with the requested time, counted from 1; 9 in the standard, others in some logs.

    Raises:
        InputError: if the file cannot be read.
        ConfigError: if the workload's jobs do not have a run time of their own.
    """
    if Path(path).suffix != ".swf":
        workload = load_workload(path)
        submit, runtime = submit_times(workload), runtimes(workload)
        return History(
            user=[job.user for job in workload.jobs],
            size=sizes(workload).astype(np.int64),
            walltime=walltimes(workload),
            submit=submit,
            end=submit + np.minimum(runtime, walltimes(workload)),
            runtime=np.minimum(runtime, walltimes(workload)),
        )
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
