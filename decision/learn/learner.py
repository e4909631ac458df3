"""PPO at work: rollouts and updates in turn, and its whole state to go on from."""

import copy
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import torch
from torch import Tensor

from decision.computer.cores import available_cores
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

_CPU = torch.device("cpu")


class PpoLearner:
    """Network, optimiser and collector of a run.

    Args:
        config: how it learns.
        envs: what it learns in; as many as the config says.
        layout: of their observations, where the network wants to know.
        metrics: of their episodes, for the curves.
        draws: as of `decision.learn.actor.NetworkActor`.

    It learns on the CPU; on a GPU, and beside others, `decision.learn.stack.PpoStack` does what `iterate` does.

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
        self.config, self.ppo = config, config.learn
        ppo, space = config.learn, envs.single_observation_space
        device_of(ppo)
        actions = int(envs.single_action_space.n)
        self.network = untrained_network(config.network, space.shape[0], actions, layout, config.seed)
        self._behaviour = copy.deepcopy(self.network)
        # updates and rollouts compute alike, in the same precision: else ratios are not 1 before the first update
        self._learning, self._acting = (_compiled(each, ppo) for each in (self.network, self._behaviour))
        self.optimizer = torch.optim.Adam(by_rate(dict(self.network.named_parameters()), ppo), **adam_of(ppo))
        self.generator = torch.Generator().manual_seed(config.seed)
        self.collector = Collector(envs, ppo.rollout, ppo.reward_scale, config.seed)
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
        envs = SchedulerVectorEnv(
            config.learn.envs, setup=setup, threads=config.learn.stepping_threads(available_cores())
        )
        metrics = (*scheduler.curves, *scheduler.metrics)
        return cls(config, envs, scheduler.layout(setup.encoder), metrics, scheduler.draws_of(config.env))

    @property
    def steps(self) -> int:
        """Environment steps learned from."""
        return self.iteration * self.ppo.envs * self.ppo.rollout

    @property
    def finished(self) -> bool:
        """Whether all steps are done."""
        return self.steps >= self.ppo.steps

    @property
    def last(self) -> bool:
        """Whether nothing is to be collected beside or after the next update."""
        return self.steps + self.ppo.envs * self.ppo.rollout >= self.ppo.steps

    def iterate(self) -> dict[str, float]:
        """Learn from a rollout and collect the next one at the same time, if the config says so.

        Then the next rollout is made by the policy from before this update: what is learned does not depend on which
        of the two is faster.
        """
        collected = self.pending or self._collect()
        following = self._pool.submit(self._collect) if self.ppo.overlap and not self.last else None
        losses = self._update(collected.rollout)
        self.pending = following.result() if following else None
        self._behaviour.load_state_dict(self.network.state_dict())
        return self.row(collected, losses)

    def row(self, collected: Collected, losses: Losses) -> dict[str, float]:
        """An update is done: what it says for the curves."""
        self.iteration += 1
        return {
            "episodes": collected.episodes,
            "reward": float(collected.rollout.reward.mean()) / self.ppo.reward_scale,
            **collected.metrics,
            **losses._asdict(),
            "lr": self.lr,
        }

    def next_rate(self) -> float:
        """Adam's for the next update."""
        self.lr = self.ppo.rate_at(self.steps / self.ppo.steps)
        return self.lr

    def _collect(self) -> Collected:
        """A rollout by the policy as it was when an update last began or ended."""
        with autocast(self.ppo, _CPU):
            return self.collector.collect(self._acting)

    def _update(self, rollout: Rollout) -> Losses:
        set_rate(self.optimizer, self.next_rate())
        return update_ppo(self._learning, self.optimizer, rollout, self.ppo, self.generator, autocast(self.ppo, _CPU))

    def policy(self) -> ChooseAll:
        """The network's choices, as a deployed policy makes them."""
        return NetworkActor(copy.deepcopy(self.network), self._draws).together

    def weights(self) -> dict[str, torch.Tensor]:
        """The network's."""
        return self.network.state_dict()

    def close(self) -> None:
        """End the thread and the environments."""
        self._pool.shutdown()
        self._envs.close()

    def take_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Learn and act with these from now on."""
        self.network.load_state_dict(weights)
        self._behaviour.load_state_dict(weights)

    def state(self) -> dict[str, Any]:
        """All from which `restore` goes on exactly as from here."""
        return {
            "iteration": self.iteration,
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "generator": self.generator.get_state(),
            "collector": self.collector.state(),
            "pending": None if self.pending is None else [self.pending.rollout._asdict(), *self.pending[1:]],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state`."""
        self.iteration = state["iteration"]
        self.take_weights(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.generator.set_state(state["generator"])
        self.collector.restore(state["collector"])
        if state["pending"] is not None:
            rollout, *rest = state["pending"]
            self.pending = Collected(Rollout(**rollout), *rest)


def by_rate(parameters: Mapping[str, Tensor], ppo: PpoConfig) -> list[dict[str, Any]]:
    """A network's parameters by name in groups of one learning rate; `share` is how many times that of others."""
    if not ppo.critic_lr:
        return [{"params": list(parameters.values())}]
    critics = [each for name, each in parameters.items() if name.startswith("critic.")]
    others = [each for name, each in parameters.items() if not name.startswith("critic.")]
    return [{"params": others}, {"params": critics, "share": ppo.critic_lr / ppo.lr}]


def adam_of(ppo: PpoConfig) -> dict[str, Any]:
    """Adam's settings."""
    return {"lr": ppo.lr, "eps": 1e-5, "fused": True}


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Let an optimiser of `by_rate` learn at this rate from now on."""
    for group in optimizer.param_groups:
        now = rate * group.get("share", 1.0)
        if isinstance(group["lr"], Tensor):  # a CUDA graph reads it
            group["lr"].fill_(now)
        else:
            group["lr"] = now


def _compiled(network: Network, ppo: PpoConfig) -> Network:
    return cast(Network, torch.compile(network)) if ppo.compile == "on" else network
