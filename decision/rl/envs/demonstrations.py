"""Schedules that policies made, as choices to learn from.

A schedule is when each job of an episode began. So whatever made it, an environment can go through it again: at each
choice the scheduler's kernel `follow` says which action starts a job that had begun by then. Any encoder sees the same
episode, and nothing of it has to be kept but these times. Where the scheduler cannot choose what was done (the job is
not in its window, or waiting is not allowed) it goes on as well as it can, and how often that was is counted.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from decision.compiling.jit import kernel
from decision.model.errors import ConfigError, InternalError
from decision.policies.profile import TOLERANCE
from decision.rl.schedulers.base import call_follow
from decision.rl.schedulers.decision_points import is_over

from .batch import Batch, evaluate, random_rows
from .environment import Begun, environment_at, start_times
from .episode import begin_episode, see, step
from .setup import Setup

NOTHING = -1  # action where an episode is over
_AT_A_TIME = 4  # episodes


class Schedule(NamedTuple):
    """What a policy did in an episode."""

    first: int  # job of the trace with which it begins
    start: NDArray[np.float64]  # (n,) seconds: when each of the jobs that came began; not finite where it did not
    transitions: int  # decisions of the policy, and starts
    rests: NDArray[np.float64] = np.zeros((0, 3))  # as of `decision.rl.envs.environment.Begun`


class Observations:
    """(R, D) f32 of which rows are read by index; where the first numbers are 0 or 1, these take a bit each.

    Args:
        flags: how many are.
        seen: (R, D).
    """

    def __init__(self, flags: int, seen: NDArray[np.float32]) -> None:
        self._flags = flags
        self._bits = np.packbits(seen[:, :flags] != 0.0, axis=1)
        self._rest = seen[:, flags:].copy()

    @classmethod
    def joined(cls, parts: Sequence["Observations"]) -> "Observations":
        """All rows one after the other; of one encoder."""
        whole = cls(parts[0]._flags, np.empty((0, parts[0]._flags), np.float32))
        whole._bits = np.concatenate([part._bits for part in parts])
        whole._rest = np.concatenate([part._rest for part in parts])
        return whole

    @property
    def packed(self) -> bool:
        """Whether some numbers take a bit each."""
        return self._flags > 0

    def __len__(self) -> int:
        """R: how many rows there are."""
        return len(self._rest)

    def __getitem__(self, rows: Any) -> NDArray[np.float32]:
        """(..., D) of these rows."""
        rest = self._rest[rows]
        if not self._flags:
            return rest
        bits = np.unpackbits(self._bits[rows], axis=-1, count=self._flags)
        return np.concatenate([bits, rest], axis=-1, dtype=np.float32)


class Demonstrations(NamedTuple):
    """Episodes one after the other: R rows, each a choice or the last state of an episode."""

    observation: Observations  # (R, D)
    mask: NDArray[np.bool_]  # (R, A) valid actions
    action: NDArray[np.int64]  # (R,) the choice; NOTHING in the last state of an episode
    reward: NDArray[np.float32]  # (R,) what was paid for it
    terminated: NDArray[np.bool_]  # (R,) whether the episode ended with it, and was not cut off
    late: int  # jobs that began later than they had
    placed: int  # jobs that began

    @property
    def choices(self) -> NDArray[np.int64]:
        """Rows whose choice is valid: those that can be learned from."""
        rows = np.flatnonzero(self.action >= 0)
        return rows[self.mask[rows, self.action[rows]]]

    @property
    def summary(self) -> str:
        """How much there is, and how much of it could not be followed, in words."""
        valid, made = len(self.choices), int(np.count_nonzero(self.action >= 0))
        return (
            f"{valid:,} choices; {made - valid:,} others are not allowed here, and {self.late:,} of {self.placed:,} "
            "jobs begin later than recorded, as they were outside of the window"
        )


def record_schedules(policy: str, setup: Setup, transitions: int, seed: int) -> list[Schedule]:
    """Let a policy schedule random episodes until there are so many transitions.

    Args:
        policy: a heuristic's name.
        setup: of the environment; of its scheduler only the episodes count.
        transitions: at least so many; the last episode is whole.
        seed: of the episodes' first jobs, and of the policy.

    Raises:
        ConfigError: if there is no such policy.
        PolicyError: if it plans what is impossible.
    """
    schedules: list[Schedule] = []
    for chunk in range(transitions):  # each has a transition at least
        rows = random_rows(setup, _AT_A_TIME, [seed, chunk])
        began: list[Begun] = []
        metrics = evaluate(policy, setup, seed=seed, first=rows, began=began)
        for row, decisions, (start, rests) in zip(rows.tolist(), metrics["length"], began, strict=True):
            starts = int(np.isfinite(start).sum() + np.isfinite(rests[:, 2]).sum())
            schedules.append(Schedule(row, start, int(decisions) + starts, rests))
            transitions -= schedules[-1].transitions
            if transitions <= 0:
                return schedules
    raise InternalError("episodes without transitions")


def replay_schedules(setup: Setup, schedules: Iterable[Schedule]) -> Demonstrations:
    """Go through schedules in the environment that made them, or one that differs in what it sees.

    Args:
        setup: of the environment.
        schedules: of episodes of its trace.

    Raises:
        ConfigError: if its scheduler cannot follow schedules, or an episode does not begin where one may.
    """
    follow = setup.scheduler.follow
    if follow is None:
        raise ConfigError(f"{setup.scheduler.name} cannot learn from schedules: they do not say what it would choose")
    batch, rows = Batch(setup, 1, 1), setup.beginnings.row
    env, room = batch.envs[0], _Room(setup)
    parts: list[tuple[Any, ...]] = []
    late = placed = 0
    for schedule in schedules:
        beginning = int(np.searchsorted(rows, schedule.first))
        if beginning == len(rows) or rows[beginning] != schedule.first:
            raise ConfigError(f"no episode begins with job {schedule.first:,} of this workload")
        start = np.full(setup.rules.arrivals, np.nan)
        start[: len(schedule.start)] = schedule.start[: len(start)]
        where = batch.addresses[0], setup.rules, batch.kernels, follow.address, beginning
        due = np.full(len(env.state.size), np.nan)
        n = _follow(*where, start, schedule.rests, due, room.states)
        batch.check()
        if env.progress.refused_plan:
            raise InternalError("a schedule was followed by what the engine cannot carry out")
        parts.append(room.take(n, env.progress.terminated == 1))
        began = start_times(env)
        late += int(np.sum(began > due[: len(began)] + TOLERANCE))
        placed += int(env.progress.nb_placed)
    batch.close()
    if not parts:
        raise ConfigError("there are no schedules to learn from")
    seen, *columns = zip(*parts, strict=True)
    mask, action, reward, terminated = map(np.concatenate, columns)
    return Demonstrations(Observations.joined(seen), mask, action, reward, terminated, late, placed)


class _States(NamedTuple):
    """What is seen, and what is done there."""

    seen: NDArray[np.float32]  # (n, D)
    mask: NDArray[np.int8]  # (n, A)
    action: NDArray[np.int64]  # (n,)
    reward: NDArray[np.float32]  # (n,)


class _Room:
    """Arrays for the longest episode."""

    def __init__(self, setup: Setup) -> None:
        rows = setup.rules.steps + 1
        seen = np.empty((rows, *setup.encoder.shape), np.float32)
        mask = np.empty((rows, setup.encoder.actions), np.int8)
        setup.encoder.check_arrays(len(setup.platform.hosts), seen, mask)
        self._flags = setup.encoder.flags
        self.states = _States(seen, mask, np.empty(rows, np.int64), np.empty(rows, np.float32))

    def take(self, n: int, terminates: bool) -> tuple[Any, ...]:
        """The first n states, of which the last one is where the episode is over."""
        seen, mask, action, reward = self.states
        mask, action, reward = mask[:n].copy(), action[:n].copy(), reward[:n].copy()
        action[-1], reward[-1] = NOTHING, 0.0
        terminated = np.zeros(n, np.bool_)
        terminated[-2:-1] = terminates
        return Observations(self._flags, seen[:n]), mask != 0, action, reward, terminated


@kernel
def _follow(addresses, rules, kernels, follow, beginning, start, rests, due, states):
    """Follow a schedule from the beginning of an episode; returns how many states there were, the last one included.

    `due` (J,) gets when each job is to begin, by its number here.
    """
    env, n, end, known = environment_at(addresses), 0, -np.inf, 0
    # up to the last start that is known: what would be chosen after it was not recorded
    for time in start:
        end = max(end, time) if np.isfinite(time) else end
    for rest in rests:
        end = max(end, rest[2]) if np.isfinite(rest[2]) else end
    begin_episode(env, rules, kernels, beginning)
    see(env, kernels, states.seen[n], states.mask[n])
    while not is_over(env.progress) and env.state.now <= end + TOLERANCE:  # what would be done later is not known
        for job in range(known, env.state.nb_jobs):  # when the jobs are to begin that have come
            row, nth = env.sim.truth_of[job] - env.progress.first_row, env.state.nth_rest[job]
            due[job] = start[row] if nth == 0 else np.nan
            for i in range(len(rests) if nth > 0 else 0):
                if rests[i, 0] == row and rests[i, 1] == nth:
                    due[job] = rests[i, 2]
        known = env.state.nb_jobs
        states.action[n] = call_follow(follow, (env.seen, env.cycles, env.memory, due))
        states.reward[n] = step(env, rules, kernels, states.action[n])
        n += 1
        see(env, kernels, states.seen[n], states.mask[n])
    return n + 1
