"""PPO at work: rollouts and updates in turn, and its whole state to go on from."""

import copy
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, cast

import torch

from decision.computer.room import check_memory
from decision.envs import SchedulerVectorEnv, Setup
from decision.envs.evaluation import ChooseAll
from decision.learned.base import ChoosingScheduler, Draws, Scheduler
from decision.learned.encoder import Layouts

from .actor import NetworkActor
from .algorithm_settings import PpoConfig
from .collector import Collected, Collector, MaskedVectorEnv
from .config import TrainConfig
from .devices import autocast, device_of
from .networks import untrained_network
from .perceptrons import Network
from .ppo import Losses, Rollout, update_ppo


class PpoLearner:
    """Network, optimiser and collector of a run.

    Args:
        config: how it learns.
        envs: what it learns in; as many as the config says.
        layout: of their observations, where the network wants to know.
        metrics: of their episodes, for the curves.
        draws: as of `decision.learn.actor.NetworkActor`.

    Raises:
        ConfigError: if the config asks for a GPU and there is none.
    """

    def __init__(
        self,
        config: TrainConfig,
        envs: MaskedVectorEnv,
        layout: Layouts | None,
        metrics: tuple[str, ...],
        draws: Draws = "nothing",
    ) -> None:
        assert isinstance(config.learn, PpoConfig)
        assert config.network is not None
        self.config, self._ppo = config, config.learn
        ppo, space = config.learn, envs.single_observation_space
        self.device = device_of(ppo)
        actions = int(envs.single_action_space.n)
        network = untrained_network(config.network, space.shape[0], actions, layout, config.seed)
        self.network = network.to(self.device)
        self._behaviour = copy.deepcopy(network)
        # updates and rollouts compute alike, in the same precision: else ratios are not 1 before the first update
        self._learning, self._acting = (_compiled(each, ppo, self.device) for each in (network, self._behaviour))
        self._optimizer = torch.optim.Adam(_by_rate(network, ppo), lr=ppo.lr, eps=1e-5, fused=True)
        self._generator = torch.Generator().manual_seed(config.seed)
        self._collector = Collector(envs, ppo.rollout, ppo.reward_scale, config.seed)
        self._envs, self._pool, self._draws = envs, ThreadPoolExecutor(1), draws
        self.columns = ("episodes", "reward", *metrics, *Losses._fields, "lr")
        self.iteration = 0
        self.lr = ppo.lr  # of the last update
        self.pending: Collected | None = None

    @classmethod
    def make(cls, config: TrainConfig, scheduler: Scheduler, setup: Setup) -> "PpoLearner":
        """For a scheduler's environments."""
        assert isinstance(scheduler, ChoosingScheduler)
        assert isinstance(config.learn, PpoConfig)
        steps = config.learn.rollout * (2 if config.learn.overlap else 1)  # an observation is in float32
        check_memory("environments with their rollouts", config.learn.envs, 4 * steps * setup.encoder.shape[0])
        envs = SchedulerVectorEnv(config.learn.envs, setup=setup, threads=1)
        metrics = (*scheduler.curves, *scheduler.metrics)
        return cls(config, envs, scheduler.layout(setup.encoder), metrics, scheduler.draws_of(config.env))

    @property
    def steps(self) -> int:
        """Environment steps learned from."""
        return self.iteration * self._ppo.envs * self._ppo.rollout

    @property
    def finished(self) -> bool:
        """Whether all steps are done."""
        return self.steps >= self._ppo.steps

    def iterate(self) -> dict[str, float]:
        """Learn from the pending rollout and collect the next one, at the same time if the config says so.

        Then the next rollout is made by the policy from before this update: what is learned does not depend on which
        of the two is faster.
        """
        collected = self.pending or self._collect()
        last = self.steps + self._ppo.envs * self._ppo.rollout >= self._ppo.steps
        following: Future[Collected] | None = None
        if self._ppo.overlap and not last:
            following = self._pool.submit(self._collect)
        losses = self._update(collected.rollout)
        self.iteration += 1
        self.pending = following.result() if following else None
        self._behaviour.load_state_dict(self.network.state_dict())
        if not (following or last):
            self.pending = self._collect()
        return {
            "episodes": collected.episodes,
            "reward": float(collected.rollout.reward.mean()) / self._ppo.reward_scale,
            **collected.metrics,
            **losses._asdict(),
            "lr": self.lr,
        }

    def _collect(self) -> Collected:
        """A rollout by the policy as it was when an update last began or ended."""
        with autocast(self._ppo, self.device):
            return self._collector.collect(self._acting)

    def _update(self, rollout: Rollout) -> Losses:
        ppo = self._ppo
        self.lr = ppo.rate_at(self.steps / ppo.steps)
        for group in self._optimizer.param_groups:
            group["lr"] = self.lr * group.get("share", 1.0)
        there = Rollout(*(column.to(self.device) for column in rollout))
        return update_ppo(self._learning, self._optimizer, there, ppo, self._generator, autocast(ppo, self.device))

    def policy(self) -> ChooseAll:
        """The network's choices, as a deployed policy makes them."""
        return NetworkActor(copy.deepcopy(self.network).cpu(), self._draws).together

    def weights(self) -> dict[str, torch.Tensor]:
        """The network's."""
        return self.network.state_dict()

    def close(self) -> None:
        """End the thread and the environments."""
        self._pool.shutdown()
        self._envs.close()

    def state(self) -> dict[str, Any]:
        """All from which `restore` goes on exactly as from here."""
        return {
            "iteration": self.iteration,
            "network": self.network.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "generator": self._generator.get_state(),
            "collector": self._collector.state(),
            "pending": None if self.pending is None else [self.pending.rollout._asdict(), *self.pending[1:]],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state`."""
        self.iteration = state["iteration"]
        self.network.load_state_dict(state["network"])
        self._behaviour.load_state_dict(state["network"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._generator.set_state(state["generator"])
        self._collector.restore(state["collector"])
        if state["pending"] is not None:
            rollout, *rest = state["pending"]
            self.pending = Collected(Rollout(**rollout), *rest)


def _by_rate(network: Network, ppo: PpoConfig) -> list[dict[str, Any]]:
    """The network's parameters in groups of one learning rate; `share` is how many times that of others."""
    if not ppo.critic_lr:
        return [{"params": list(network.parameters())}]
    critics = list(cast(torch.nn.Module, network.critic).parameters())
    known = {id(each) for each in critics}
    others = [each for each in network.parameters() if id(each) not in known]
    return [{"params": others}, {"params": critics, "share": ppo.critic_lr / ppo.lr}]


def _compiled(network: Network, ppo: PpoConfig, device: torch.device) -> Network:
    wanted = ppo.compile == "on" or (ppo.compile == "auto" and device.type == "cuda")
    return cast(Network, torch.compile(network)) if wanted else network
