"""The archive's language of filters: ``user=68 and (job>=58 and job<=564)`` names jobs to leave out.

Fields are job, user, submit, proc (processors), app (executable), queue, part (partition) and status; operators are
``=``, ``!=``, ``<``, ``<=``, ``>`` and ``>=``, joined by ``and``, ``or``, ``not`` and parentheses. Dates like
2012-02-03 stand for their first second on the machine's clock.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from .columns import JobColumns
from .dates import read_moment
from .demand import sizes, submit_times
from .errors import ConfigError
from .trace import of_jobs
from .workload import Job, Workload, used_profiles

_TOKEN = re.compile(r"\s*(\(|\)|<=|>=|!=|==|=|<|>|[^\s()<>=!]+)")
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "=": np.equal,
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
_EXTRA = {"app": "executable", "queue": "queue", "group": "group"}
FIELDS = ("job", "user", "submit", "proc", "part", "status", *_EXTRA)
_STATUS = {"0": "FAILED", "1": "COMPLETED", "5": "CANCELLED"}

Mask = np.ndarray  # (J,) of bool


def matches(workload: Workload, text: str) -> Mask:
    """Which jobs a filter names, (J,).

    Raises:
        ConfigError: if it is not a filter, with the place of the first mistake.
    """
    return _Parser(workload, text).whole()


def keep(workload: Workload, keep: NDArray[np.bool_], reason: str) -> Workload:
    """The jobs that are to be kept and the profiles that they need; the others counted under `reason`."""
    if keep.all():
        return workload
    jobs: Sequence[Job]
    if isinstance(workload.jobs, JobColumns):
        jobs = workload.jobs.take(keep)
        used = used_profiles(workload.profiles, jobs.profile.used())
    else:
        jobs = tuple(workload.jobs[i] for i in np.flatnonzero(keep).tolist())
        used = used_profiles(workload.profiles, {job.profile for job in jobs})
    profiles = {name: profile for name, profile in workload.profiles.items() if name in used}
    dropped = Counter(workload.dropped) + Counter({reason: len(keep) - len(jobs)})
    return replace(workload, jobs=jobs, profiles=profiles, dropped=dict(dropped))


class _Parser:
    """A filter read from the left to the right, one rule a method."""

    def __init__(self, workload: Workload, text: str) -> None:
        self._workload, self._text = workload, text
        self._tokens = _TOKEN.findall(text)
        if "".join(self._tokens) != re.sub(r"\s", "", text):
            raise self._error("unreadable")
        self._at = 0

    def whole(self) -> Mask:
        mask = self._either()
        if self._at < len(self._tokens):
            raise self._error("'and' or 'or' is missing")
        return mask

    def _error(self, why: str) -> ConfigError:
        near = " ".join(self._tokens[getattr(self, "_at", 0) :][:3]) or "the end"
        example = "user=68 and (job>=58 and job<=564)"
        return ConfigError(f"filter {self._text!r}: {why} at {near!r}; write it like {example}", field="filter")

    def _next(self) -> str:
        if self._at >= len(self._tokens):
            raise self._error("incomplete")
        self._at += 1
        return str(self._tokens[self._at - 1])

    def _takes(self, word: str) -> bool:
        if self._at < len(self._tokens) and self._tokens[self._at].lower() == word:
            self._at += 1
            return True
        return False

    def _either(self) -> Mask:
        mask = self._both()
        while self._takes("or"):
            mask = mask | self._both()
        return mask

    def _both(self) -> Mask:
        mask = self._one()
        while self._takes("and"):
            mask = mask & self._one()
        return mask

    def _one(self) -> Mask:
        if self._takes("not"):
            return ~self._one()
        if self._takes("("):
            mask = self._either()
            if not self._takes(")"):
                raise self._error("')' is missing")
            return mask
        field = self._next().lower()
        if field not in FIELDS:
            self._at -= 1
            raise self._error(f"unknown field (known are {', '.join(FIELDS)})")
        operator = self._next()
        if operator not in _OPERATORS:
            self._at -= 1
            raise self._error("one of = != < <= > >= is missing")
        return self._compare(field, operator, self._next())

    def _compare(self, field: str, operator: str, value: str) -> Mask:
        compare = _OPERATORS[operator]
        if field in ("submit", "proc"):
            numbers = submit_times(self._workload) if field == "submit" else sizes(self._workload)
            return np.asarray(compare(numbers, self._number(field, value)), bool)
        texts = self._texts(field)
        if operator in ("=", "==", "!="):
            wanted = _STATUS.get(value, value) if field == "status" else value
            return np.asarray(compare(np.array(texts, object), wanted), bool)
        numbers = np.array([float(text) if text.isdecimal() else np.nan for text in texts])
        return np.asarray(compare(numbers, self._number(field, value)), bool)

    def _number(self, field: str, value: str) -> float:
        try:
            return read_moment(value).of(self._workload) if field == "submit" else float(value)
        except ValueError:
            raise self._error(f"{value!r} is not a number") from None

    def _texts(self, field: str) -> list[str]:
        jobs = self._workload.jobs
        if field == "job":
            return [job.name for job in jobs]
        if field == "user":
            return [job.user for job in jobs]
        if field in _EXTRA:
            return [str((job.extra or {}).get(_EXTRA[field], "")) for job in jobs]
        if self._workload.trace is None:
            return [""] * len(jobs)
        trace = of_jobs(self._workload.trace, jobs)
        return list(trace.texts("request", "partition") if field == "part" else trace.texts("recorded", "state"))
