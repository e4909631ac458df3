"""What a policy expected of each job and what it was, as CSV."""

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from decision.model.record import JobTable, PredictionTable

from .files import write_files
from .outputs_write import table_chunks

_PREDICTION_HEADER = "job_id,predicted_runtime,corrections,runtime,walltime,promised_start,start\n"


def write_predictions(path: Path, jobs: JobTable, predictions: PredictionTable) -> None:
    """Write what a policy expected of each job and what it was, as CSV.

    Raises:
        ConfigError: if the file cannot be written.
    """
    write_files({path: table_chunks(_PREDICTION_HEADER, len(jobs.id), partial(_prediction_rows, jobs, predictions))})


def _prediction_rows(jobs: JobTable, predictions: PredictionTable, rows: slice) -> Iterator[str]:
    numbers = (
        predictions.predicted[rows],
        predictions.corrections[rows],
        jobs.runtime[rows],
        jobs.walltime[rows],
        predictions.promised[rows],
        jobs.start_time[rows],
    )
    for job, *row in zip(jobs.id[rows], *(column.tolist() for column in numbers), strict=True):
        cells = ("" if math.isnan(number) else f"{number:.12g}" for number in row)
        yield f"{job},{','.join(cells)}\n"
