"""What forecasts of earlier moments teach: how far off they were, whom to believe, how wide intervals must be.

A forecast is made of up to four. Each of them is corrected by what it missed (`Calibration`), the four are mixed by
what they lost, and the mixture's intervals are made wider or narrower until they hold as often as they say (`Blend`).
All is learnt in one pass, and what is kept does not grow with the history.
"""

from typing import NamedTuple

import msgspec
import numpy as np

from decision.compiling.bundle import F8, I8

from .judge import COVERED, KEPT_LEVELS, MEDIAN, pinball

_OFFSET = 60.0  # seconds: errors of less than a minute are all small
# CTC, Theta, COARE and Gaia under EASY, basic_backfill_long and coarse_backfill chose these three, of some values each.
_FLOOR = 0.2  # of the logarithm of waits: how sure a forecast can be
_STEP = 0.001  # by which a level moves with each job
_CAP = 1.2  # of the logarithm of waits: how far a quantile may be moved beyond what the forecasts say
_AT_ONCE = 20  # jobs after which the levels move
_KEPT = 3000  # errors that are remembered
_BELIEF = 60  # errors as many as which the futures themselves count


# The median scores of ten logs and recordings that `decision reproduce starts` judged, at KEPT_LEVELS.
PRIOR_SCORES = np.array([-1.8, -1.4, -1.2, -0.8, -0.2, 0.3, 0.8, 1.0, 1.1])


class Calibration:
    """Learns from forecasts whose jobs have started, how far off they were in units of their own spread.

    Conformal prediction (Vovk et al. 2005; normalised scores of Papadopoulos et al. 2011), above and below the median
    each with the spread of that side. Logs change, and their jobs depend on each other, so that the levels at which
    the scores are read move as well, by adaptive conformal inference (Gibbs and Candes 2021). Only what was known at
    the time of a forecast may be learnt before it.
    """

    def __init__(self, prior: F8 | None = None) -> None:
        """`prior`: (len(KEPT_LEVELS),) quantiles of the scores of other logs, which count as `_BELIEF` jobs."""
        self._prior, self._scores, self._levels = prior, [0.0][:0], KEPT_LEVELS.copy()

    @property
    def learnt(self) -> int:
        """How many forecasts it has learnt from."""
        return len(self._scores)

    def learn(self, quantiles: F8, left: F8) -> None:
        """Forecasts (n, len(KEPT_LEVELS)) and the seconds (n,) that jobs really waited."""
        for first in range(0, len(left), _AT_ONCE):
            part, took = quantiles[first : first + _AT_ONCE], left[first : first + _AT_ONCE]
            below = (took[:, None] <= self.apply(part)).sum(0)
            self._levels = np.clip(self._levels + _STEP * (KEPT_LEVELS * len(took) - below), 0.002, 0.998)
            self._scores = (self._scores + scores(part, took).tolist())[-_KEPT:]

    def apply(self, quantiles: F8) -> F8:
        """Quantiles (n, len(KEPT_LEVELS)) as they should have been."""
        low, middle, high = _spread_of(quantiles)
        logs = _logs(quantiles)
        off = logs - middle[:, None]
        own = off / np.where(off > 0, high[:, None], low[:, None])
        count = len(self._scores)
        own = own if self._prior is None else np.broadcast_to(self._prior, own.shape)
        learnt = np.quantile(self._scores, np.sort(self._levels)) if count else 0.0
        weight = count / (count + _BELIEF)
        mixed = weight * learnt + (1 - weight) * own
        moved = middle[:, None] + np.where(mixed > 0, high[:, None], low[:, None]) * mixed
        moved = np.clip(moved, logs[:, :1] - _CAP, logs[:, -1:] + _CAP)
        return np.maximum.accumulate(_seconds(moved), axis=1)


def scores(quantiles: F8, left: F8) -> F8:
    """(n,) how far off forecasts (n, len(KEPT_LEVELS)) were, in units of their own spread."""
    low, middle, high = _spread_of(quantiles)
    off = _logs(left) - middle
    return off / np.where(off > 0, high, low)


def _spread_of(quantiles: F8) -> tuple[F8, F8, F8]:
    logs = _logs(quantiles)
    low, middle, high = logs[:, 2], logs[:, MEDIAN], logs[:, 6]
    return middle - low + _FLOOR, middle, high - middle + _FLOOR


def _logs(seconds: F8) -> F8:
    return np.log(np.maximum(seconds, 0.0) + _OFFSET)


def _seconds(logs: F8) -> F8:
    return np.maximum(0.0, np.exp(logs) - _OFFSET)


# Several forecasts in one.
#
# Chosen on COARE and Gaia under EASY, COARE as recorded, and the recordings age_size, coarse_backfill and
# fair_share_qos, of two to four values each; all others were looked at once.
_POWER = 4.0  # of losses: how much more is believed who lost less
_FORGOTTEN = 0.99  # of a loss, from moment to moment
_NEIGHBOURS = 60  # cases alike
_PART = 200  # jobs for which they are looked for at once
_FEWEST_CASES, _FEWEST_MOMENTS = 60, 12  # before cases alike say anything
_WIDENED = 0.2  # of the logarithm of a width: by which it grows where all jobs of a usual moment were missed
_USUAL = 15  # jobs of a moment
_WIDEST = 1.5  # logarithm: 4.5 times as wide, or as narrow
_FIRST_WIDTHS = np.array([0.0, 0.0, 0.15])  # logarithms, of COVERED: few misses say little of 95 %
_MOST_OPEN = 400  # moments whose jobs have not all started

FUTURES, LIKE_JOBS, QUEUE, ERRORS = range(4)
# how much columns count when cases are alike: size, limit, waited, jobs ahead, their work, running jobs, their work
# left, median wait of like jobs
_QUEUE_COLUMNS, _QUEUE_WEIGHTS = [0, 1, 2, 3, 4, 5, 7], np.array([1, 1, 1, 1, 1.5, 0.3, 1, 1])
# what futures say, how wide, what like jobs say, waited, size, work ahead
_ERROR_WEIGHTS = np.array([2, 1, 1, 1, 0.5, 0.5])


class Evidence(NamedTuple):
    """What there is to say of n jobs that wait at a moment."""

    futures: F8  # (n, len(KEPT_LEVELS)) seconds that they still wait, as futures say
    alike: F8  # (n, len(KEPT_LEVELS)) the same as like jobs say
    features: F8  # (n, F) of the queue, as of `like_jobs.queue_features`


class _Moment(msgspec.Struct):
    """The forecasts of an earlier moment, of jobs of which not all have started."""

    number: int
    at: float  # seconds
    rows: I8  # (n,) of the log
    evidence: Evidence
    raw: list[F8]  # of each forecaster, (n, len(KEPT_LEVELS)) seconds before its own calibration
    calibrated: list[F8]  # and after it
    mixed: F8  # (n, len(KEPT_LEVELS)) the forecast in the end
    undecided: np.ndarray  # (n, len(COVERED)) whether it is not known yet if an interval holds
    unlearnt: np.ndarray  # (n,) whether the job had not started


class _Case(msgspec.Struct):
    """Past cases as columns; the oldest are dropped."""

    queue: F8
    errors: F8
    left: F8  # (k,) logarithms
    off: F8  # (k,) logarithms: how much longer it was than the futures' median
    moment: I8

    def with_more(self, other: "_Case") -> "_Case":
        """These errors and the others, of all together the latest `_KEPT`."""
        fields = self.__struct_fields__
        return _Case(*(np.concatenate([getattr(self, f), getattr(other, f)])[-_KEPT:] for f in fields))


class Blend:
    """One forecast of four, and intervals that hold.

    - What the futures say, corrected by `Calibration`.
    - The waits of like jobs, corrected so.
    - What became of jobs in like queues at earlier moments: analogs (nearest neighbours of features of the queue).
    - The futures, moved by the errors of forecasts alike.

    Quantiles of the logarithm are averaged, each weighing by what it lost before. A scheduler that is not the simulated
    one, or limits that the log does not tell of, make futures worthless, and then they weigh nothing. Analogs of one
    moment are wrong together, so that they count by the root of how many they are.

    The width of each central interval then follows its misses (adaptive conformal inference of Gibbs and Candes 2021,
    on the width itself as in Angelopoulos et al. 2023): wider after misses, narrower where it always holds, moment by
    moment. Each job counts alike, as in the coverage that is to hold. An interval that has passed without the start is
    a miss at once, so that long waits are not learnt too late. Where analogs begin, the forecast is another one: its
    widths are learnt from then on.

    Args:
        prior: as of `Calibration`, of the futures.
    """

    def __init__(self, prior: F8 | None = None) -> None:
        self._own = [Calibration(prior), Calibration(), Calibration(), Calibration()]
        self._loss = np.zeros(4)  # seconds
        self._width = _FIRST_WIDTHS.copy()
        self._open: list[_Moment] = []
        self._cases: _Case | None = None
        self._number = 0
        self._analogs_since = -1  # number of a moment

    @property
    def learnt(self) -> int:
        """How many forecasts it has learnt from."""
        return self._own[FUTURES].learnt

    @property
    def weights(self) -> F8:
        """(4,) how much each forecaster is believed: FUTURES, LIKE_JOBS, QUEUE, ERRORS."""
        known = 4 if self._analogs_since >= 0 else 2
        if not self._loss[FUTURES]:
            return np.eye(4)[FUTURES]
        lost = np.where(np.arange(4) < known, np.maximum(self._loss, 1e-9), np.inf)
        weights = (lost / lost.min()) ** -_POWER
        return weights / weights.sum()

    @property
    def widened(self) -> dict[int, float]:
        """By percent, how many times as wide as mixed its interval is made."""
        return {percent: float(np.exp(width)) for percent, width in zip(COVERED, self._width, strict=True)}

    def forecast(self, evidence: Evidence) -> F8:
        """Quantiles (n, len(KEPT_LEVELS)) of the seconds that jobs still wait."""
        return self._widen(self._mixed(self._each(evidence)[1]))

    def follow(self, at: float, rows: I8, evidence: Evidence) -> F8:
        """As `forecast`, of jobs by their rows of the log at a moment, to be learnt from when they have started."""
        raw, calibrated = self._each(evidence)
        found, count = self._widen(self._mixed(calibrated)), len(rows)
        self._open.append(
            _Moment(
                number=self._number,
                at=at,
                rows=rows,
                evidence=evidence,
                raw=raw,
                calibrated=calibrated,
                mixed=found,
                undecided=np.ones((count, len(COVERED)), bool),
                unlearnt=np.ones(count, bool),
            )
        )
        self._open = self._open[-_MOST_OPEN:]
        self._number += 1
        return found

    def learn(self, at: float, start: F8) -> None:
        """What is known at a later moment: `start` (jobs,) by row of the log; what is after `at` is not looked at."""
        lefts = [np.where(start[each.rows] <= at, start[each.rows] - each.at, np.inf) for each in self._open]
        steps, lost = np.zeros(len(COVERED)), np.zeros(4)
        for each, left in zip(self._open, lefts, strict=True):
            steps += self._misses(each, left, at - each.at)
            if (new := each.unlearnt & np.isfinite(left)).any():
                lost += [pinball(left[new], forecast[new]).mean(1).sum() for forecast in each.calibrated]
        self._width = np.clip(self._width + np.clip(_WIDENED * steps, -0.5, 0.5), -_WIDEST, _WIDEST)
        if lost.any():
            self._loss = _FORGOTTEN * self._loss + lost
        for each, left in zip(self._open, lefts, strict=True):
            new = each.unlearnt & np.isfinite(left)
            each.unlearnt &= ~new
            if not new.any():
                continue
            for kind, (own, raw) in enumerate(zip(self._own, each.raw, strict=True)):
                if kind in (FUTURES, LIKE_JOBS) or 0 <= self._analogs_since <= each.number:
                    own.learn(raw[new], left[new])
            queue, errors = _columns(each.evidence)
            logs, middle = _logs(left[new]), _logs(each.evidence.futures[new, MEDIAN])
            more = _Case(queue[new], errors[new], logs, logs - middle, np.full(int(new.sum()), each.number))
            self._cases = more if self._cases is None else self._cases.with_more(more)
        self._open = [each for each in self._open if each.unlearnt.any() or each.undecided.any()]

    def _misses(self, each: _Moment, left: F8, passed: float) -> F8:
        """(len(COVERED),) misses beyond those that intervals allow, of those that are decided now."""
        found = np.zeros(len(COVERED))
        for place, (percent, (low, high)) in enumerate(COVERED.items()):
            decided = each.undecided[:, place] & (np.isfinite(left) | (each.mixed[:, high] < passed))
            missed = (left < each.mixed[:, low] - 1) | (left > each.mixed[:, high] + 1)
            each.undecided[:, place] &= ~decided
            allowed = 1 - percent / 100
            # in units of a miss's standard deviation, 0.4 for 80 %: so all widths are as quick, however rare misses are
            unit = np.sqrt(allowed * (1 - allowed)) / 0.4
            found[place] = (missed[decided] - allowed).sum() / (unit * _USUAL)
        return found

    def _each(self, evidence: Evidence) -> tuple[list[F8], list[F8]]:
        """What each forecaster says, before and after its own calibration; those that have not begun as the futures."""
        raw, cases = [evidence.futures, evidence.alike, evidence.futures, evidence.futures], self._cases
        calibrated = [own.apply(quantiles) for own, quantiles in zip(self._own[:2], raw[:2], strict=True)]
        enough = cases is not None and len(cases.left) >= _FEWEST_CASES
        if cases is None or not enough or len(np.unique(cases.moment)) < _FEWEST_MOMENTS:
            return raw, [*calibrated, calibrated[FUTURES], calibrated[FUTURES]]
        if self._analogs_since < 0:  # at first as good as the best
            self._analogs_since, self._loss[2:] = self._number, self._loss[:2].min()
            self._width = _FIRST_WIDTHS.copy()
            for each in self._open:
                each.undecided[:] = False
        queue, errors = _columns(evidence)
        middle = _logs(evidence.futures[:, MEDIAN : MEDIAN + 1])
        raw[QUEUE] = _seconds(_analogs(queue, cases.queue, cases, cases.left, _QUEUE_WEIGHTS))
        raw[ERRORS] = _seconds(
            np.minimum(25, middle + _analogs(errors, cases.errors, cases, cases.off, _ERROR_WEIGHTS))
        )
        return raw, [*calibrated, *(self._own[kind].apply(raw[kind]) for kind in (QUEUE, ERRORS))]

    def _mixed(self, calibrated: list[F8]) -> F8:
        """The forecasts mixed by their weights, (n, len(KEPT_LEVELS)) logarithms."""
        return sum(weight * _logs(each) for weight, each in zip(self.weights, calibrated, strict=True) if weight > 0)

    def _widen(self, logs: F8) -> F8:
        """Seconds of logarithms (n, len(KEPT_LEVELS)), intervals as wide as was learnt."""
        middle, factor = logs[:, MEDIAN : MEDIAN + 1], np.ones(len(KEPT_LEVELS))
        for width, (low, high) in zip(self._width, COVERED.values(), strict=True):
            factor[[low, high]] = np.exp(width)
        # the levels between those of the two wider intervals
        factor[[1, 7]] = np.sqrt(factor[0] * factor[2])
        side = np.sign(KEPT_LEVELS - 0.5)
        known = np.isin(np.arange(len(KEPT_LEVELS)), [1, 7], invert=True)
        moved = middle + (logs - middle) * factor + side * known * _FLOOR * np.maximum(0.0, factor - 1)
        moved = np.clip(moved, logs - _CAP, logs + _CAP)
        moved[:, MEDIAN:] = np.maximum.accumulate(moved[:, MEDIAN:], axis=1)
        moved[:, MEDIAN::-1] = np.minimum.accumulate(moved[:, MEDIAN::-1], axis=1)
        return _seconds(moved)


def _columns(evidence: Evidence) -> tuple[F8, F8]:
    """(n, 8) of the queue and (n, 6) of the forecast, in logarithms: what makes cases alike."""
    queue, futures = np.log1p(evidence.features[:, _QUEUE_COLUMNS]), _logs(evidence.futures)
    alike = _logs(evidence.alike[:, MEDIAN])
    of_forecast = [futures[:, MEDIAN], futures[:, 6] - futures[:, 2], alike, queue[:, 2], queue[:, 0], queue[:, 4]]
    return np.column_stack([queue, alike]), np.column_stack(of_forecast)


def _analogs(asked: F8, known: F8, cases: _Case, values: F8, weights: F8) -> F8:
    """(n, len(KEPT_LEVELS)) quantiles of `values` (k,) of the cases nearest to each of `asked` (n, F)."""
    if len(asked) > _PART:
        parts = [asked[first : first + _PART] for first in range(0, len(asked), _PART)]
        return np.concatenate([_analogs(part, known, cases, values, weights) for part in parts])
    mean, spread = known.mean(0), known.std(0) + 0.05
    known, asked = (known - mean) / spread * np.sqrt(weights), (asked - mean) / spread * np.sqrt(weights)
    far = np.maximum(0.0, (known**2).sum(1) - 2 * asked @ known.T + (asked**2).sum(1)[:, None])
    near = np.argpartition(far, min(_NEIGHBOURS, len(known)) - 1, axis=1)[:, :_NEIGHBOURS]
    near = np.take_along_axis(near, np.argsort(values[near], axis=1), axis=1)
    far, moment = np.take_along_axis(far, near, axis=1), cases.moment[near]
    weight = np.maximum(1e-3, 1 - far / (far.max(1, keepdims=True) + 1e-9))
    weight /= np.sqrt((moment[:, :, None] == moment[:, None, :]).sum(2))
    below = (np.cumsum(weight, axis=1) - 0.5 * weight) / weight.sum(1, keepdims=True)
    return np.array([np.interp(KEPT_LEVELS, *pair) for pair in zip(below, values[near], strict=True)])
