"""The jobs of a large workload file as columns that grow part by part."""

import math
from array import array

import msgspec
import numpy as np
from numpy.typing import NDArray

from decision.model.column import Labelled, numbered, small
from decision.model.columns import JobColumns, worth_rows
from decision.model.demand import read_estimate
from decision.model.trace import Trace, join_traces, read_trace

from .job_sources import SourcesInFile, Stamp
from .json_parts import ArrayPart, NotInPartsError
from .json_text import as_rapidjson
from .workload_objects import RawJob, full_job_ids, given_walltime, given_worth, label

_JOBS = msgspec.json.Decoder(list[RawJob])


class GrowingJobs:
    """The columns of jobs whose ids are numbers, growing part by part."""

    def __init__(self, name: str, path: str) -> None:
        self._name, self._path = name, path
        self._ids, self._size = array("q"), array("i")
        self._submit, self.given_walltime, self._estimate = array("d"), array("d"), array("d")
        self.given_worth: list[tuple[int, NDArray[np.float64] | None]] = []  # by part: jobs, and what they are worth
        self._profile, self._user = array("i"), array("i")
        self._profiles: dict[str, int] = {}
        self._users: dict[str, int] = {}
        self._traces: list[Trace] = []  # by part
        self._begin, self._length = array("q"), array("i")  # bytes: each job's JSON in the file

    def add(self, part: ArrayPart) -> None:
        """Add some jobs. Raises NotInPartsError, InputError, or one of DECODE_ERRORS."""
        jobs = _JOBS.decode(b"[" + as_rapidjson(part.text) + b"]")
        full = full_job_ids(jobs, self._name, self._path)
        if not all(map(_is_number, (job.id for job in jobs))):
            raise NotInPartsError
        self._ids.extend([int(job.id) for job in jobs])
        self._submit.extend([job.subtime for job in jobs])
        self._size.extend([job.res for job in jobs])
        self.given_walltime.extend([given_walltime(job, i, self._path) for job, i in zip(jobs, full, strict=True)])
        self._estimate.extend([read_estimate(job.estimate) for job in jobs])
        self.given_worth.append(
            (len(jobs), worth_rows([given_worth(job, i, self._path) for job, i in zip(jobs, full, strict=True)]))
        )
        self._profile.extend([self._profiles.setdefault(job.profile, len(self._profiles)) for job in jobs])
        self._user.extend([self._users.setdefault(label(job.user), len(self._users)) for job in jobs])
        submit = np.array([job.subtime for job in jobs])
        trace = read_trace((), submit, [(job.recorded, job.request) for job in jobs])
        self._traces.append(trace or Trace(id=(), wait=np.full(len(full), math.nan)))
        at = 0
        for source in part.objects:
            at, length = part.text.index(b"{", at), memoryview(source).nbytes
            self._begin.append(part.begin + at)
            self._length.append(length)
            at += length

    def jobs(self, stamp: Stamp | None) -> JobColumns:
        """All jobs, with their JSON in the file that has this stamp, if any. Raises NotInPartsError."""
        numbers = np.array(self._ids)
        if len(np.unique(numbers)) < len(numbers):
            raise NotInPartsError
        ids = numbered(self._name, numbers)
        places = np.array(self._begin), np.array(self._length)
        estimate = np.array(self._estimate)
        return JobColumns(
            id=ids,
            submit_time=np.array(self._submit),
            size=np.array(self._size),
            walltime=np.array(self.given_walltime),
            profile=Labelled(list(self._profiles), small(np.array(self._profile))),
            user=Labelled(list(self._users), small(np.array(self._user))),
            estimate=None if np.isnan(estimate).all() else estimate,
            worth=self._all_worth(),
            source=SourcesInFile(self._path, stamp, ids, *places) if stamp else None,
        )

    def trace(self, jobs: JobColumns) -> Trace | None:
        """What was recorded of the jobs; None where nothing was."""
        trace = join_traces(self._traces, jobs.id)
        return trace if trace.recorded or trace.request or not np.isnan(trace.wait).all() else None

    def _all_worth(self) -> NDArray[np.float64] | None:
        """What the jobs of all parts are worth."""
        if all(rows is None for _, rows in self.given_worth):
            return None
        return np.concatenate([np.full((n, 4), math.nan) if rows is None else rows for n, rows in self.given_worth])


def _is_number(job_id: int | str) -> bool:
    """Whether an id is a number of at most 15 digits, written as numbers are."""
    text = str(job_id)
    return text.isascii() and text.isdigit() and len(text) < 16 and str(int(text)) == text
