"""`SchedulerVectorEnv`: N clusters stepped by compiled code, into arrays that the caller may own."""

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from decision.model.computer import available_cores
from decision.model.errors import ConfigError, mapping, whole
from decision.model.record import HostState
from decision.rl.schedulers.base import Encoder
from decision.state.cluster import ClusterState

from .batch import ANY_ROW, GO_ON, Outputs, check_outputs, make_batch
from .setup import Setup, make_setup

Observation = NDArray[np.float32] | dict[str, NDArray[Any]]
Step = tuple[Observation, NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]


class SchedulerVectorEnv(VectorEnv):
    """N environments as `SchedulerEnv`, side by side; environment i with seed s + i does what one with that seed does.

    An episode that ends is followed by the next one in the same step (`AutoresetMode.SAME_STEP`): the observation
    returned is the new episode's first, ``info["final_obs"]`` (N, D) has the last of the old one where
    ``info["_final_obs"]`` (N,). ``info["metrics"]`` then is a dict of arrays (N,) f64, one for each of
    `decision.rl.envs.EPISODE_METRICS` and of the scheduler's own, valid where ``info["_metrics"]`` (N,);
    ``info["final_info"]`` has the same, and the mask
    of the old one's last observation. ``info["action_mask"]`` (N, A) i8 goes with the observations returned.

    Args:
        num_envs: N.
        threads: that step them; by default as many as there are cores. No lock of Python's is held meanwhile.
        dict_observation: whether observations are dicts of ``observation`` and ``action_mask``.
        options: of `decision.rl.envs.make_setup`, or a finished ``setup``.

    Raises:
        ConfigError: for options that make no sense.
    """

    preset_options: Mapping[str, Any] = {}  # those of a scheduler's own class
    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(
        self,
        num_envs: int = 1,
        *,
        setup: Setup | None = None,
        threads: int | None = None,
        dict_observation: bool = False,
        **options: Any,
    ) -> None:
        self.num_envs = whole("num_envs", num_envs, 1)
        self.setup = setup or make_setup(**{**self.preset_options, **options})
        self.encoder, self._as_dict = self.setup.encoder, dict_observation
        self.single_observation_space = observation_space(self.encoder, dict_observation)
        self.single_action_space = spaces.Discrete(self.encoder.actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._batch = make_batch(self.setup, num_envs, threads or available_cores())
        self._like = self.new_outputs()
        self._mask = np.ones_like(self._like.mask)
        self._everywhere = np.ones(num_envs, np.bool_)
        self._seeded = False

    def new_outputs(self) -> Outputs:
        """Arrays for `out` of `reset` and `step`."""
        return self._batch.new_outputs()

    def _checked(self, out: Outputs | None) -> Outputs:
        return self.new_outputs() if out is None else check_outputs(out, self._like)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
        out: Outputs | None = None,
    ) -> tuple[Observation, dict[str, Any]]:
        """New episodes.

        Args:
            seed: of environment 0, the next numbers for the others; or one for each. Without it their random numbers
                go on.
            options: ``first``: the job of the trace with which each episode begins, random where -1;
                ``reset_mask`` (N,): only these environments.
            out: where observations and masks are written; new arrays without it.
        """
        super().reset(seed=seed if isinstance(seed, int) else None)
        self._seed(seed)
        out = self._checked(out)
        self._batch.reset(first_jobs(options, self.num_envs), out)
        return self._observation(out), self._info(out)

    def _seed(self, seed: int | Sequence[int | None] | None) -> None:
        if isinstance(seed, (int, np.integer)):
            self._batch.seed([int(seed) + i for i in range(self.num_envs)])
        elif seed is not None or not self._seeded:
            given = [None] * self.num_envs if seed is None else seed
            drawn = self.np_random.integers(2**31, size=self.num_envs)
            self._batch.seed([int(d if s is None else s) for s, d in zip(given, drawn, strict=True)])
        self._seeded = True

    def step(self, actions: NDArray[np.integer[Any]], out: Outputs | None = None) -> Step:
        """One choice in each environment.

        Args:
            actions: (N,) numbers of actions.
            out: where everything is written; new arrays without it.

        Raises:
            ConfigError: if these are no N actions.
        """
        out = self._checked(out)
        self._batch.step(check_actions(actions, self.num_envs, self.encoder.actions), True, out)
        info = self._info(out)
        over = out.terminated | out.truncated
        if over.any():
            names = self._batch.metric_names
            metrics = dict(zip(names, np.where(over, self._batch.metrics.T, 0.0), strict=True))
            final = np.where(over[:, None], self._batch.final, np.float32(0.0))
            info |= {"metrics": metrics, "_metrics": over, "final_obs": final, "_final_obs": over}
            last = {"action_mask": self._batch.final_mask.copy(), "_action_mask": over}
            info |= {"final_info": {"metrics": metrics, "_metrics": over, **last}, "_final_info": over}
        return self._observation(out), out.reward, out.terminated, out.truncated, info

    def _info(self, out: Outputs) -> dict[str, Any]:
        self._mask = out.mask
        return {"action_mask": out.mask, "_action_mask": self._everywhere}

    def _observation(self, out: Outputs) -> Observation:
        return {"observation": out.observation, "action_mask": out.mask} if self._as_dict else out.observation

    def action_masks(self) -> NDArray[np.bool_]:
        """Which actions are valid now, (N, A)."""
        return self._mask.astype(np.bool_)

    def get_state(self) -> dict[str, NDArray[Any]]:
        """All that `set_state` needs, in environments of the same options, to go on from here exactly."""
        return self._batch.state()

    def set_state(
        self, state: dict[str, NDArray[Any]], out: Outputs | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Go on from where `get_state` was called; returns the observations and masks of then."""
        out = self._checked(out)
        self._batch.restore(state, out)
        self._seeded = True
        return self._observation(out), self._info(out)

    def state_of(self, i: int) -> ClusterState:
        """The cluster of environment i as it is now, to be read only."""
        return self._batch.envs[i].state

    def close_extras(self, **kwargs: Any) -> None:
        """End the threads that step the environments."""
        self._batch.close()


def observation_space(encoder: Encoder, as_dict: bool) -> spaces.Space[Any]:
    """Numbers in [0, 1], or any where they are of a class of one's own; next to the mask where it is in a dict."""
    box = spaces.Box(*encoder.bounds, encoder.shape, np.float32)
    return spaces.Dict({"observation": box, "action_mask": spaces.MultiBinary(encoder.actions)}) if as_dict else box


def first_jobs(options: Any, envs: int) -> NDArray[np.int64]:
    """With which jobs of the trace so many environments begin, (N,): ANY_ROW, or GO_ON where one is not reset.

    Raises:
        ConfigError: if the options of a reset say no such thing.
    """
    given = mapping("options", options, '{"first": 0}')
    first, mask = np.asarray(given.get("first", ANY_ROW)), np.asarray(given.get("reset_mask", True))
    if first.dtype.kind not in "iu" or first.shape not in ((), (envs,)):
        wanted = f"a whole number or {envs} of them; found {given['first']!r}"
        raise ConfigError(f"options: first must be {wanted}", field="options")
    if mask.dtype.kind != "b" or mask.shape not in ((), (envs,)):
        wanted = f"True or False for each of {envs} environments; found {given['reset_mask']!r}"
        raise ConfigError(f"options: reset_mask must be {wanted}", field="options")
    return np.where(np.broadcast_to(mask, envs), first, GO_ON).astype(np.int64)


def check_actions(given: Any, envs: int, actions: int) -> NDArray[np.int64]:
    """The numbers of actions (N,), for so many environments of so many actions each.

    Raises:
        ConfigError: if they are of another shape or type, or one is outside of the action space.
    """
    chosen = np.asarray(given)
    if chosen.shape != (envs,) or chosen.dtype.kind not in "iu":
        found = f"{chosen.dtype} {chosen.shape}"
        raise ConfigError(f"actions: must be whole numbers ({envs},), one for each environment; found {found}")
    if chosen.min() < 0 or chosen.max() >= actions:
        wrong = chosen[(chosen < 0) | (chosen >= actions)][0]
        raise ConfigError(f"action: must be one of 0 to {actions - 1}; found {wrong}", field="action")
    return np.ascontiguousarray(chosen, np.int64)


# `SchedulerEnv`: one cluster, as Gymnasium has environments.

_SHOWN = 10  # jobs of the queue that `render` shows


class SchedulerEnv(gymnasium.Env):
    """One cluster on which a scheduler chooses; the classes of schedulers say what is observed, chosen and rewarded.

    Args:
        dict_observation: whether observations are dicts of ``observation`` and ``action_mask``.
        render_mode: None, or ``ansi``: `render` returns the cluster as text.
        options: of `decision.rl.envs.make_setup`, or a finished ``setup``.

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
        self.observation_space = observation_space(self.encoder, dict_observation)
        self.action_space = spaces.Discrete(self.encoder.actions)
        self._batch = make_batch(self.setup, 1, 1)
        self._mask = np.ones(self.encoder.actions, np.int8)
        self._action = np.zeros(1, np.int64)
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
        if type(action) is int and 0 <= action < self.encoder.actions:  # what others are takes longer to find out
            self._action[0] = action
        else:
            self._action = check_actions(np.reshape(action, -1), 1, self.encoder.actions)
        self._batch.step(self._action, False, out)
        terminated, truncated = bool(out.terminated[0]), bool(out.truncated[0])
        observation = self._observation(out)
        info: dict[str, Any] = {"action_mask": self._mask}
        if terminated or truncated:
            info["metrics"] = dict(zip(self._batch.metric_names, self._batch.metrics[0].tolist(), strict=True))
        return observation, float(out.reward[0]), terminated, truncated, info

    def close(self) -> None:
        """End the Batsim that simulates, where one does."""
        self._batch.close()

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
