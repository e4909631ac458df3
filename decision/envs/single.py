"""`SchedulerEnv`: one cluster, as Gymnasium has environments."""

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from decision.model.errors import ConfigError
from decision.model.record import HostState
from decision.state.cluster import ClusterState

from .batch import Batch, Outputs
from .setup import Setup, make_setup
from .vector import Observation, check_actions, first_jobs, observation_space

_SHOWN = 10  # jobs of the queue that `render` shows


class SchedulerEnv(gymnasium.Env):
    """One cluster on which a scheduler chooses; the classes of schedulers say what is observed, chosen and rewarded.

    Args:
        dict_observation: whether observations are dicts of ``observation`` and ``action_mask``.
        render_mode: None, or ``ansi``: `render` returns the cluster as text.
        options: of `decision.envs.make_setup`, or a finished ``setup``.

    Raises:
        ConfigError: for options that make no sense.
    """

    preset_options: Mapping[str, Any] = {}  # those of a scheduler's own class
    metadata = {"render_modes": ["ansi"], "render_fps": 1}

    def __init__(
        self,
        *,
        setup: Setup | None = None,
        dict_observation: bool = False,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ConfigError(f"render_mode: must be ansi or None; found {render_mode!r}", field="render_mode")
        self.render_mode = render_mode
        self.setup = setup or make_setup(**{**self.preset_options, **options})
        self._as_dict = dict_observation
        self.encoder = self.setup.encoder
        self.observation_space = observation_space(self.encoder.shape, self.encoder.actions, dict_observation)
        self.action_space = spaces.Discrete(self.encoder.actions)
        self._batch = Batch(self.setup, 1, 1)
        self._mask = np.ones(self.encoder.actions, np.int8)
        self._seeded = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """A new episode; ``options["first"]`` is the job of the trace with which it begins, -1 for a random one."""
        super().reset(seed=seed)
        if seed is not None or not self._seeded:
            self._batch.seed([int(self.np_random.integers(2**31)) if seed is None else seed])
            self._seeded = True
        out = self._batch.new_outputs()
        self._batch.reset(first_jobs(options, 1), out)
        return self._observation(out), {"action_mask": self._mask}

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """One choice. Raises ConfigError for what is not an action."""
        out = self._batch.new_outputs()
        self._batch.step(check_actions(np.reshape(action, -1), 1, self.encoder.actions), False, out)
        terminated, truncated = bool(out.terminated[0]), bool(out.truncated[0])
        observation = self._observation(out)
        info: dict[str, Any] = {"action_mask": self._mask}
        if terminated or truncated:
            info["metrics"] = dict(zip(self._batch.metric_names, self._batch.metrics[0].tolist(), strict=True))
        return observation, float(out.reward[0]), terminated, truncated, info

    def render(self) -> str | None:
        """The cluster as text: the clock, a sign for each host, and the first jobs of the queue."""
        if self.render_mode is None:
            return None
        state = self.state
        now, waiting, running = state.now, state.nb_queued, state.nb_running
        hosts = "".join("#" if host == HostState.COMPUTING else "." for host in state.host_state)
        lines = [f"t={now:,.0f} s, {running:,} jobs run on the hosts #, {waiting:,} wait", hosts]
        for job in state.queue[: min(waiting, _SHOWN)]:
            asks = f"{state.size[job]:,} hosts, walltime {state.walltime[job]:,.0f} s"
            lines.append(f"job {job}: {asks}, waits {now - state.submit_time[job]:,.0f} s")
        return "\n".join([*lines, *(["..."] if waiting > _SHOWN else [])])

    def _observation(self, out: Outputs) -> Observation:
        self._mask = out.mask[0]
        numbers = out.observation[0]
        return {"observation": numbers, "action_mask": self._mask} if self._as_dict else numbers

    @property
    def state(self) -> ClusterState:
        """The cluster as it is now, to be read only."""
        return self._batch.envs[0].state

    def action_masks(self) -> NDArray[np.bool_]:
        """Which actions are valid now, (A,)."""
        return self._mask.astype(np.bool_)
