"""`Environment`: an observation, actions and a reward in plain Python, of what a `ClusterView` shows.

Design
------
A class of four methods is a scheduler like any other: its record (`own_record.record_of`) wraps the kernels of a
shipped one, its `base`, which do whatever is not overridden. Python is asked between two calls of the compiled loop,
never from within it: before a step it writes what an action means into the plan, and the wrapper of ACT takes that
over; after a step it looks at what has become of it. So the same loop, engine and decision points run, and what is
written in Python gives the numbers that kernels would give. Where a policy decides (`decision.rl.schedulers.policy`),
the same methods are asked at the same places.

Rejected: Python called back from kernels, in which nothing may be raised; a copy of the loop in Python, the second of
its kind.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from decision.policies.policy import Plan
from decision.state.cluster import ClusterState, PlatformFacts
from decision.state.plan_arrays import START
from decision.state.view import ClusterView, JobsView, hosts_in

from .decision_points import Cycles


class ChoiceView(ClusterView):
    """The cluster as it is before a choice: a `ClusterView` in which what this instant's choices started has left.

    Attributes:
        observation: what the base observes, (D,) f32.
        valid: the mask of the base's actions, (A,) i8.
        paid: the base's reward for the last choice; 0 where a policy decides.
        over: whether the episode has ended; nothing is chosen then, and the reward is the last.
        since: seconds: when the last choice was made; -inf before the first.

    Examples:
        >>> import decision as d
        >>> env = d.make_env("dbf", "toy", "toy", observe=lambda view: [view.nb_free / 4, len(view.queue) / 8], jobs=4)
        >>> env.reset(seed=1, options={"first": 0})[0].tolist()
        [1.0, 0.125]
    """

    def __init__(
        self,
        state: ClusterState,
        facts: PlatformFacts,
        names: Sequence[str],
        cycles: Cycles,
        plan: Plan,
        metrics: Callable[[], Mapping[str, float]] = dict,
    ) -> None:
        super().__init__(state, facts, names)
        self._cycles, self._plan, self._metrics = cycles, plan, metrics
        self.observation, self.valid = np.zeros(0, np.float32), np.zeros(0, np.int8)
        self.paid, self.over, self.since = 0.0, False, -np.inf

    @property
    def queue(self) -> JobsView:
        """Jobs that wait, in order of submission; of those that come at one instant each is shown after the other."""
        return self._jobs(self._cycles.queue, self._cycles.nb_queued)

    @property
    def running(self) -> JobsView:
        """Jobs that run, by expected end, and after them those that this instant's choices have started."""
        state, plan = self.arrays, self._plan.arrays
        numbers = state.running[: state.nb_running]
        begun = plan.job[: plan.nb_actions][plan.kind[: plan.nb_actions] == START]
        return JobsView(state, self.names, np.concatenate([numbers, begun]) if len(begun) else numbers)

    @property
    def ended(self) -> JobsView:
        """Jobs that ended since the last choice."""
        state = self.arrays
        return JobsView(
            state, self.names, np.flatnonzero(state.end_time[: state.nb_jobs] > self.since).astype(np.int32)
        )

    @property
    def nb_free(self) -> int:
        """Hosts that can be given a job now."""
        return int(self._cycles.nb_free)

    @property
    def free_hosts(self) -> list[int]:
        """Ids of the hosts that can be given a job now, ascending."""
        return hosts_in(self._plan.arrays.free)

    @property
    def busy_until(self) -> NDArray[np.float64]:
        """Seconds (H,): expected end of the job on each host; -inf where it is free, inf where it is away."""
        until = self._cycles.until.view()
        until.flags.writeable = False
        return until

    @property
    def elapsed(self) -> float:
        """Seconds since the last choice; 0 before the first one."""
        return self.now - self.since if self.since > -np.inf else 0.0

    @property
    def metrics(self) -> Mapping[str, float]:
        """The episode's so far, by the names of `decision.rl.envs.EPISODE_METRICS`; none where a policy decides."""
        return self._metrics()


Asks = Literal["waits", "fits", "always"]


class Environment:
    """A scheduler that learns, in plain Python: inherit, and override what shall be other than in `base`.

    `decision.make_env` takes the class, ``decision train ./mine.py:MyScheduler`` trains it, and its checkpoint runs,
    serves and passes gates as those of shipped schedulers do. A checkpoint names the class: keep its file where it was,
    and change the class's name when what it observes changes its meaning. Each environment, and each policy, has an
    object of its own, made without arguments, which may remember what it likes (`begin` forgets it).

    Attributes:
        base: the shipped scheduler that does what is not overridden; its settings are the environment's. None: there
            is none, and `observe` and `act` are overridden.
        actions: how many there are, where `act` is overridden.
        asks: where `act` is overridden, when a choice is asked for: ``waits``: jobs wait; ``fits``: one of them fits;
            ``always``: at each arrival and each end.
        energy: whether energy is simulated, and hosts may sleep.
        preset: what of a training's settings is other than the default, ``{"learn": {"envs": 8}}``.

    Examples:
        >>> import decision as d
        >>> class Shortest(d.Environment):
        ...     actions = 2  # 1: the shortest job starts
        ...     def observe(self, view):
        ...         return [view.nb_free / view.nb_hosts, min(len(view.queue), 10) / 10]
        ...     def mask(self, view):
        ...         return [view.nb_free < view.nb_hosts, any(view.queue.size <= view.nb_free)]
        ...     def act(self, view, action, plan):
        ...         if action == 1:
        ...             plan.start(min((j for j in view.queue if j.size <= view.nb_free), key=lambda j: j.walltime))
        ...     def reward(self, view):
        ...         return -len(view.queue) * view.elapsed
        >>> env = d.make_env(Shortest, "toy", "toy", jobs=4)
        >>> observation, info = env.reset(seed=1, options={"first": 0})
        >>> observation.tolist(), info["action_mask"].tolist(), env.step(1)[1]
        ([1.0, 0.10000000149011612], [0, 1], -0.0)
    """

    base: ClassVar[str | None] = "dbf"
    actions: ClassVar[int] = 0
    asks: ClassVar[Asks] = "waits"
    energy: ClassVar[bool] = False
    preset: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    def begin(self) -> None:
        """An episode or a run begins."""

    def observe(self, view: ChoiceView) -> ArrayLike:
        """What a choice is made from: always as many numbers, (D,); the base's."""
        return view.observation

    def mask(self, view: ChoiceView) -> ArrayLike:
        """Which actions may be chosen, (A,) of booleans, one at least; the base's, or all of one's own."""
        return view.valid

    def act(self, view: ChoiceView, action: int, plan: Plan) -> bool | None:
        """Write what an action means into the plan.

        Returns:
            Whether another choice follows at this instant, before time passes; None: if a job starts.
        """
        raise NotImplementedError  # the base's, which is compiled

    def reward(self, view: ChoiceView) -> float:
        """What the last choice is paid, with the cluster as it is before the next one, or at the episode's end."""
        return view.paid
