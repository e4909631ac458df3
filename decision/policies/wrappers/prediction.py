"""Any policy with predicted run times: it decides on the cluster as its `Outlook` shows it.

A job's run time is predicted when it is submitted, after the jobs that ended at that instant were learned from: at
least a second, at most its walltime, at which it is killed all the same. A job that outlives its prediction gets
another one at the next decision (a correction), as often as needed; no call is asked for that. Predictions and the
corrections by increments are those of Tsafrir, Etsion and Feitelson, Backfilling Using System-Generated Predictions
Rather than User Runtime Estimates, IEEE Transactions on Parallel and Distributed Systems 18(6), 2007.

Design
------
A policy reads `expected_runtime`, `running` and `expected_end` of the cluster's state. `seen_through` is the same
state, array for array, but for these, which are the outlook's; so no policy knows of predictors, a policy without
`estimate` sees the state itself, and nothing that simulates or speaks to Batsim knows of either. Rejected: predictions
in the state, which transitions would have to keep by the settings of a policy.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from decision.compiling.bundle import F8, I1, I4, I8, Float, Int, bundle_at
from decision.compiling.jit import kernel
from decision.compiling.small_kernels import insert_in_order
from decision.model.record import FinalState, PredictionTable
from decision.policies.memory import Memory
from decision.policies.policy import Policy
from decision.policies.prepared import DECIDE, DECIDED, NO_PLAN
from decision.policies.runtimes.kernels import (
    QuantileMemory,
    forget_quantiles,
    forget_regression,
    grown_habits,
    learn_end,
    learn_quantiles,
    new_regression,
    observe_last_two,
    predict,
    predict_last_two,
    quantile,
    room_for_habits,
    room_for_quantiles,
    say_quantiles,
)
from decision.policies.traits import Correction, Estimator, OutlookSettings, Traits
from decision.state.cluster import ENDED, RUNNING, ClusterState

from . import AroundPolicy, ask_inner, layers, own_memory

_SHORTEST = 1.0  # seconds: no prediction is below
_MINUTE, _HOUR = 60.0, 3600.0
_INCREMENTS = np.array(
    [*(m * _MINUTE for m in (1, 5, 15, 30)), *(h * _HOUR for h in (1, 2, 5, 10, 20, 50, 100))]
)  # seconds by which corrections are above the prediction
_KILLED = ENDED + int(FinalState.COMPLETED_KILLED)


class Outlook(QuantileMemory):
    """What is expected, and what it was learned from. J jobs and R running jobs of the state's capacity."""

    estimate: Int  # Estimator
    correction: Int  # Correction
    shadow: Float  # with quantiles: the level by which running jobs are expected to have ended
    fill: Float  # and the level that is expected of jobs that wait
    nb_predicted: Int  # jobs numbered below this were predicted
    nb_listed: Int  # length of running
    expected_runtime: F8  # (J,) seconds, as in the state
    running: I4  # (R,) as in the state
    expected_end: F8  # (R,) seconds, as in the state
    revisions: I8  # (1,) as in the state
    predicted: F8  # (J,) seconds: what was expected when the job was submitted
    corrections: I4  # (J,) how often that was corrected
    listed: I1  # (J,) whether the job is in `running`


def new_outlook(state: ClusterState, settings: OutlookSettings) -> Outlook:
    """Before anything was seen; with room for every job of `state`."""
    jobs, most = len(state.size), len(state.running)
    learns = settings.estimate not in (Estimator.WALLTIME, Estimator.GIVEN)
    regression = new_regression(room_for_habits(jobs if learns else 0))
    spread = settings.estimate == Estimator.QUANTILES
    return Outlook(
        **regression.arrays(),
        **room_for_quantiles(len(regression.habit_key) if spread else 0, jobs if spread else 0),
        **settings._asdict(),
        expected_runtime=np.zeros(jobs),
        running=np.zeros(most, np.int32),
        expected_end=np.zeros(most),
        revisions=np.zeros(1, np.int64),
        predicted=np.zeros(jobs),
        corrections=np.zeros(jobs, np.int32),
        listed=np.zeros(jobs, np.int8),
    )


def grown_outlook(outlook: Outlook, state: ClusterState) -> Outlook:
    """The same outlook with room for every job of `state`: the same arrays where they are long enough."""
    jobs, most = len(state.size), len(state.running)
    changed: dict[str, Any] = {}
    if len(outlook.predicted) < jobs:
        by_job = ("expected_runtime", "predicted", "corrections", "listed")
        changed |= {name: _longer(getattr(outlook, name), jobs) for name in by_job}
    if len(outlook.running) < most:
        changed |= {name: _longer(getattr(outlook, name), most) for name in ("running", "expected_end")}
    grown = outlook._replace(**changed) if changed else outlook
    # A table of one row belongs to an estimator that learns nothing.
    if len(outlook.habit_key) > 1:
        grown = grown_habits(grown, jobs)
    rows = len(grown.habit_key)
    if 0 < len(grown.recent) < rows:
        grown = grown._replace(recent=_longer(grown.recent, rows), said=_longer(grown.said, len(grown.predicted)))
    return grown


def _longer(array: np.ndarray, length: int) -> np.ndarray:
    longer = np.zeros((length, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


def seen_through(state: ClusterState, outlook: Outlook) -> ClusterState:
    """The state as a policy with this outlook sees it: the same arrays, but those that the outlook has."""
    return state._replace(
        expected_runtime=outlook.expected_runtime,
        running=outlook.running,
        expected_end=outlook.expected_end,
        revisions=outlook.revisions,
    )


@kernel
def forget_outlook(outlook):
    """Forget a run: nothing was seen or learned."""
    outlook.nb_predicted = outlook.nb_listed = 0
    outlook.listed[:] = 0
    outlook.corrections[:] = 0
    outlook.revisions[0] = 0
    forget_regression(outlook)
    if len(outlook.recent) > 0:
        forget_quantiles(outlook)


@kernel
def look_ahead(state, outlook):
    """Bring the outlook up to date with a state, before a decision: learn, predict, correct."""
    for i in range(state.nb_ended):
        job = state.ended[i]
        if state.job_state[job] == _KILLED:  # before its walltime: its run time is not known
            continue
        estimate, user, walltime = outlook.estimate, state.user[job], state.walltime[job]
        runtime = min(state.end_time[job] - state.start_time[job], walltime)
        if estimate == Estimator.LAST2:
            observe_last_two(outlook, user, runtime)
        elif estimate == Estimator.REGRESSION:
            learn_end(outlook, user, state.size[job], walltime, state.submit_time[job], runtime)
        elif estimate == Estimator.QUANTILES:
            learn_quantiles(outlook, job, user, state.size[job], walltime, runtime)
    _list_running(state, outlook)
    for job in range(outlook.nb_predicted, state.nb_jobs):
        estimate, user, size, walltime = outlook.estimate, state.user[job], state.size[job], state.walltime[job]
        seconds = walltime
        if estimate == Estimator.LAST2:
            seconds = predict_last_two(outlook, user, walltime)
        elif estimate == Estimator.REGRESSION:
            seconds = predict(outlook, user, size, walltime, state.submit_time[job])
        elif estimate == Estimator.QUANTILES:
            say_quantiles(outlook, job, user, size, walltime)
            seconds = quantile(outlook, user, size, walltime, 0.0, outlook.fill)
        elif estimate == Estimator.GIVEN and state.estimate[job] > 0.0:
            seconds = state.estimate[job]
        outlook.predicted[job] = outlook.expected_runtime[job] = min(max(seconds, _SHORTEST), walltime)
    outlook.nb_predicted = state.nb_jobs
    # Expect more of the jobs that have outlived what was expected. The list ascends by expected end: only its front can
    # be overdue.
    running, ends, listed = outlook.running, outlook.expected_end, outlook.nb_listed
    i = 0
    while i < listed and ends[i] <= state.now:
        job = running[i]
        if outlook.expected_runtime[job] >= state.walltime[job]:
            i += 1
            continue
        # Until it is above what has run, or the walltime.
        walltime, start, seconds = state.walltime[job], state.start_time[job], outlook.expected_runtime[job]
        while start + seconds <= state.now and seconds < walltime:
            step, before = outlook.corrections[job], seconds
            outlook.corrections[job] = step + 1
            if outlook.estimate == Estimator.QUANTILES:
                seconds = _predict_left(state, outlook, job)
            elif outlook.correction == Correction.DOUBLING:
                seconds = 2.0 * seconds
            # Tsafrir's increments are above the first prediction, not above one another.
            elif outlook.correction == Correction.INCREMENTS and step < len(_INCREMENTS):
                seconds = outlook.predicted[job] + _INCREMENTS[step]
            else:
                seconds = walltime
            seconds = min(seconds, walltime)
            if step > len(_INCREMENTS) and seconds <= before:
                seconds = walltime  # a correction that changes nothing would be the last one
        outlook.expected_runtime[job] = seconds
        for k in range(i, listed - 1):
            running[k] = running[k + 1]
            ends[k] = ends[k + 1]
        insert_in_order(ends, running, listed - 1, start + seconds, job)
        outlook.revisions[0] += 1


@kernel
def _predict_left(state, outlook, job):
    """Expect of a job that runs what such jobs take, those that took longer than it has run so far."""
    walltime, elapsed = state.walltime[job], state.now - state.start_time[job]
    seconds = quantile(outlook, state.user[job], state.size[job], walltime, elapsed, outlook.shadow)
    return min(max(seconds, _SHORTEST), walltime)


@kernel
def _list_running(state, outlook):
    """Take the jobs that no longer run out of `running`, and put those that have started in."""
    running, ends, listed = outlook.running, outlook.expected_end, outlook.nb_listed
    # Jobs that ended leave the list; nothing else takes one out, so the pass is skipped where none has.
    if state.nb_ended > 0 or listed > state.nb_running:
        kept = 0
        for i in range(listed):
            if state.job_state[running[i]] == RUNNING:
                running[kept] = running[i]
                ends[kept] = ends[i]
                kept += 1
        listed = kept
    if listed < state.nb_running:
        for i in range(state.nb_running):
            job = state.running[i]
            if outlook.listed[job] == 0:
                outlook.listed[job] = 1
                if outlook.estimate == Estimator.QUANTILES:
                    outlook.expected_runtime[job] = _predict_left(state, outlook, job)
                    outlook.revisions[0] += 1
                end = state.start_time[job] + outlook.expected_runtime[job]
                insert_in_order(ends, running, listed, end, job)
                listed += 1
    outlook.nb_listed = listed


_outlook_at = bundle_at(Outlook)


@DECIDE.entry
def _decide_estimated(state, facts, memory, plan):
    look_ahead(state, _outlook_at(own_memory(memory)))
    return DECIDED if ask_inner(memory, facts, plan) else NO_PLAN


class EstimatedPolicy(AroundPolicy):
    """Another policy, which expects run times that were predicted instead of walltimes.

    Args:
        policy: any.
        settings: who predicts, and how predictions are corrected.
        name: for messages.
    """

    entry = _decide_estimated

    def __init__(self, policy: Policy, settings: OutlookSettings, name: str = "") -> None:
        super().__init__(policy, name)
        self.settings = settings

    @property
    def traits(self) -> Traits:
        """Who predicts says what jobs must say."""
        who = self.settings.estimate
        return super().traits._replace(needs_estimate=who == Estimator.GIVEN, needs_users=who == Estimator.LAST2)

    @property
    def outlook(self) -> Outlook | None:
        """That of the present run, or of the last one."""
        return self.memory and self.memory.own  # type: ignore[return-value]

    def memory_for(self, state: ClusterState, memory: Outlook | None = None) -> Outlook:
        """An outlook with room for all of `state`, not up to date."""
        return new_outlook(state, self.settings) if memory is None else grown_outlook(memory, state)

    def seen(self, state: ClusterState, own: Outlook) -> ClusterState:
        """The state through the outlook."""
        return seen_through(state, own)

    def predictions(self, numbers: NDArray[np.integer]) -> PredictionTable | None:
        """What was expected in the last run of the jobs of these numbers, in the order of submission; None before."""
        outlook, promised = self.outlook, np.full(len(numbers), np.nan)
        if self.memory is None or outlook is None:
            return None
        if isinstance(self.memory.inner, Memory) and len(self.memory.inner.promised):
            promised = self.memory.inner.promised[numbers]
        return PredictionTable(
            predicted=outlook.predicted[numbers], corrections=outlook.corrections[numbers], promised=promised
        )

    def __repr__(self) -> str:
        return f"<policy {self.name}, estimate={self.settings.estimate.name.lower()}>"


def predictions_of(policy: Policy, numbers: NDArray[np.integer]) -> PredictionTable | None:
    """What a policy expected in the last run of the jobs of these numbers; None where it expects walltimes."""
    expects = next((layer for layer in layers(policy) if isinstance(layer, EstimatedPolicy)), None)
    return None if expects is None else expects.predictions(numbers)
