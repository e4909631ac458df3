"""Proximal policy optimisation with masked actions.

Schulman et al. 2017 (arXiv 1707.06347), with generalised advantage estimation (Schulman et al. 2016, arXiv 1506.02438)
and invalid actions masked (Huang and Ontanon 2022, arXiv 2006.14171). Read `update_ppo` from top to bottom.
"""

import copy
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager
from operator import methodcaller
from typing import Any, NamedTuple, TypeVar, cast

import torch
from torch import Tensor

from decision.model.computer import available_cores, check_memory
from decision.rl.envs import SchedulerVectorEnv, Setup
from decision.rl.envs.batch import ChooseAll
from decision.rl.schedulers.base import ChoosingScheduler, Draws, Layouts, Scheduler

from .acting import Collected, Collector, MaskedVectorEnv, NetworkActor, Rollout, log_probs
from .config import PpoConfig, TrainConfig
from .networks import Network, untrained_network
from .products import quick
from .weights import autocast, device_of

_VALUE, _KL = 1, 3  # of `Losses`


_Found = TypeVar("_Found")


class Losses(NamedTuple):
    """What an update did, averaged over its minibatches."""

    policy_loss: float
    value_loss: float
    entropy: float  # nats
    kl: float  # from the policy that collected, nats
    clipped: float  # share of steps whose ratio was clipped
    explained_variance: float  # of the returns, by the values of the rollout


def advantages(rollout: Rollout, discount: float, gae_lambda: float) -> Tensor:
    """(T, N) generalised advantage estimates: sums of (discount * lambda)^k * delta over the rest of the episode."""
    # backwards, so that each sum goes on from the one of the step after it; where an episode ends it begins anew
    estimate = torch.empty_like(rollout.reward)
    delta = rollout.reward + discount * rollout.next_value - rollout.value
    carry = discount * gae_lambda * (~rollout.ended).float()
    last = torch.zeros_like(delta[0])
    for t in reversed(range(len(delta))):
        last = delta[t] + carry[t] * last
        estimate[t] = last
    return estimate


class Minibatch(NamedTuple):
    """n steps of a rollout, as an update sees them."""

    mask: Tensor  # (n, A)
    action: Tensor  # (n,)
    log_prob: Tensor  # (n,) of the action by the policy that collected
    value: Tensor  # (n,) as it was then
    advantage: Tensor  # (n,)
    returns: Tensor  # (n,)

    def weighed(self, config: PpoConfig) -> "Minibatch":
        """With advantages as they count in the loss."""
        if not config.normalise_advantages or len(self.advantage) == 1:
            return self
        return self._replace(advantage=(self.advantage - self.advantage.mean()) / (self.advantage.std() + 1e-8))

    def part(self, rows: slice) -> "Minibatch":
        """The same columns of some of the steps, those of `rows`."""
        return Minibatch(*(column[rows] for column in self))


def policy_loss(logits: Tensor, batch: Minibatch, config: PpoConfig) -> tuple[Tensor, list[Tensor]]:
    """What an update of the policy makes smaller, of a `weighed` minibatch; its term, entropy, kl and share clipped."""
    log_prob = log_probs(logits, batch.mask)
    chosen = log_prob.gather(1, batch.action.unsqueeze(1)).squeeze(1)

    # the ratio to the policy that collected pays no more than the clip beyond it
    log_ratio = chosen - batch.log_prob
    ratio = log_ratio.exp()
    weight, clipped = batch.advantage, ratio.clamp(1 - config.clip, 1 + config.clip)
    policy_term = -torch.minimum(weight * ratio, weight * clipped).mean()

    # entropy, over the valid actions: masked ones have probability 0 and add nothing
    spread = -(log_prob.exp() * log_prob).sum(1).mean()

    kl = (ratio - 1 - log_ratio).mean()  # Schulman's estimator k3: unbiased, and never negative
    outside = ((ratio - 1).abs() > config.clip).float().mean()
    return policy_term - config.entropy * spread, [policy_term, spread, kl, outside]


def value_loss(value: Tensor, batch: Minibatch, config: PpoConfig) -> Tensor:
    """What an update of the critic makes smaller: a value counts no further from the rollout's than the clip."""
    error = (value.float() - batch.returns).square()
    if config.value_clip:
        near = batch.value + (value.float() - batch.value).clamp(-config.value_clip, config.value_clip)
        error = torch.maximum(error, (near - batch.returns).square())
    return 0.5 * error.mean()


def ppo_loss(logits: Tensor, value: Tensor, batch: Minibatch, config: PpoConfig) -> tuple[Tensor, Tensor]:
    """What an update of both makes smaller, and (5,) the first of `Losses`, without gradients."""
    loss, (policy_term, *others) = policy_loss(logits, batch, config)
    value_term = value_loss(value, batch, config)
    return loss + config.value_weight * value_term, torch.stack([policy_term, value_term, *others]).detach()


class _Side(NamedTuple):
    """Parameters that learn by themselves: those of the policy, of the critic, or of both."""

    loss: Callable[[Tensor, Minibatch], tuple[Tensor, Tensor]]  # of (n, F) features, as `ppo_loss`
    optimizer: torch.optim.Optimizer

    @property
    def found(self) -> list[Tensor]:
        """The gradients, of each parameter that has one."""
        parameters = (parameter for group in self.optimizer.param_groups for parameter in group["params"])
        return [parameter.grad for parameter in parameters if parameter.grad is not None]

    def gradients(self, features: Tensor, batch: Minibatch, at_once: int) -> tuple[Tensor, list[Tensor]]:
        """Compute them; (5,) of the `Losses` what this side knows, and the norm of each."""
        self.optimizer.zero_grad()
        sums = torch.zeros(5)
        # the gradients of a minibatch are the sum of those of its parts, if there is more than one
        for at in range(0, len(features), at_once):
            part = batch.part(slice(at, at + at_once))
            loss, terms = self.loss(features[at : at + at_once], part)
            share = len(part.action) / len(features)
            (loss if share == 1 else loss * share).backward()
            sums += terms if share == 1 else terms * share
        return sums, [torch.linalg.vector_norm(gradient) for gradient in self.found]

    def step(self, scale: Tensor) -> None:
        """Follow the gradients, of which only so much counts."""
        if scale < 1:
            for gradient in self.found:
                gradient.mul_(scale)
        self.optimizer.step()


def _sides(
    network: Network,
    optimizer: torch.optim.Optimizer,
    config: PpoConfig,
    autocast: AbstractContextManager[object],
    apart: bool,
) -> list[_Side]:
    """Both as one; or the policy and the critic."""

    def both(features: Tensor, batch: Minibatch) -> tuple[Tensor, Tensor]:
        with autocast:
            logits, value = network(features, batch.mask)
        return ppo_loss(logits, value, batch, config)

    def policy(features: Tensor, batch: Minibatch) -> tuple[Tensor, Tensor]:
        loss, (term, *others) = policy_loss(network.actor(features), batch, config)
        return loss, torch.stack([term, torch.zeros(()), *others]).detach()

    def critic(features: Tensor, batch: Minibatch) -> tuple[Tensor, Tensor]:
        term = value_loss(network.value(features), batch, config)
        return config.value_weight * term, torch.nn.functional.pad(term.detach().view(1), (_VALUE, 4 - _VALUE))

    if not apart:
        return [_Side(both, optimizer)]
    for group in optimizer.param_groups:  # a state is kept in this order, whichever side is first
        for parameter in group["params"]:
            optimizer.state[parameter]
    valued = {id(each) for name, each in network.named_parameters() if _is_critics(name)}
    parts = (lambda each: id(each) not in valued, lambda each: id(each) in valued)
    return [_Side(loss, _part_of(optimizer, which)) for loss, which in zip((policy, critic), parts, strict=True)]


def _part_of(optimizer: torch.optim.Optimizer, which: Callable[[Tensor], bool]) -> torch.optim.Optimizer:
    """An optimiser of some of the parameters of another one, with the rates that it has and what it remembers."""
    groups = [group | {"params": list(filter(which, group["params"]))} for group in optimizer.param_groups]
    part = torch.optim.Adam([group for group in groups if group["params"]])
    part.state = optimizer.state
    return part


def update_ppo(
    network: Network,
    optimizer: torch.optim.Optimizer,
    rollout: Rollout,
    config: PpoConfig,
    generator: torch.Generator,
    autocast: AbstractContextManager[object],
    beside: Executor | None = None,
) -> Losses:
    """Improve the network by a rollout.

    Args:
        network: is changed.
        optimizer: of its parameters, with the learning rate to use.
        rollout: on the network's device.
        config: how.
        generator: shuffles the steps.
        autocast: entered around each pass through the network.
        beside: a thread that learns the critic while this one learns the policy, of a network that has them `apart`;
            what is learned is the same to the last bit.
    """
    sides = _sides(network, optimizer, config, autocast, beside is not None)

    def on_all(call: Callable[[_Side], _Found]) -> list[_Found]:
        others = [beside.submit(call, side) for side in sides[1:]] if beside else []
        return [call(sides[0]), *(other.result() for other in others)]

    # the rollout as one batch of steps: which environment they are of makes no difference from here on
    advantage = advantages(rollout, config.discount, config.gae_lambda).flatten()
    features, mask, action, log_prob, old_value = (x.flatten(0, 1) for x in rollout[:5])
    whole = Minibatch(mask, action, log_prob, old_value, advantage, advantage + old_value)
    sums = torch.zeros(5)
    minibatches = 0

    # several passes over the rollout, each in an order of its own
    for _ in range(config.epochs):
        order = torch.randperm(len(advantage), generator=generator)
        before, minibatches_before = sums.clone(), minibatches
        for rows in order.split(config.minibatch):
            batch = Minibatch(*(column.index_select(0, rows) for column in whole)).weighed(config)
            at_once = network.rows_at_once or len(rows)
            # index_select copies row by row, an index number by number: a quarter of the time
            learn = methodcaller("gradients", features.index_select(0, rows), batch, at_once)
            terms, norms = zip(*on_all(learn), strict=True)
            # the gradients of all parameters together are no longer than this, as torch's clip_grad_norm_ has it
            norm = torch.linalg.vector_norm(torch.stack([each for side in norms for each in side]))
            on_all(methodcaller("step", (config.max_gradient / (norm + 1e-6)).clamp(max=1.0)))
            sums += sum(terms)
            minibatches += 1
        # stop where the policy has moved far from the one that collected: its ratios say little from there on
        if config.target_kl:
            kl = (float(sums[_KL]) - float(before[_KL])) / (minibatches - minibatches_before)
            if kl > config.target_kl:
                break

    return losses_of(sums / minibatches, whole.returns, whole.value)


def losses_of(means: Tensor, returns: Tensor, value: Tensor) -> Losses:
    """From the means of what `ppo_loss` gives, and the returns with the values of the rollout."""
    policy_loss, value_loss, entropy, kl, outside = means.tolist()
    spread = float(returns.var(unbiased=False))
    explained = 1 - float((returns - value).var(unbiased=False)) / spread if spread > 0 else 0.0
    return Losses(policy_loss, value_loss, entropy, kl, outside, explained)


# --- The learner: rollouts and updates in turn, and its whole state to go on from ----------------------------------

_CPU = torch.device("cpu")


class PpoLearner:
    """Network, optimiser and collector of a run.

    Args:
        config: how it learns.
        envs: what it learns in; as many as the config says.
        layout: of their observations, where the network wants to know.
        metrics: of their episodes, for the curves.
        draws: as of `decision.rl.learning.acting.NetworkActor`.

    It learns on the CPU; on a GPU, and beside others, `decision.rl.learning.stack.PpoStack` does what `iterate` does.

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
        half = ppo.precision == "bfloat16"
        # updates and rollouts compute alike, in the same precision: else ratios are not 1 before the first update
        self._learning, self._acting = (
            cast(Network, torch.compile(network)) if ppo.compile == "on" else network if half else quick(network)
            for network in (self.network, self._behaviour)
        )
        self.optimizer = torch.optim.Adam(by_rate(dict(self.network.named_parameters()), ppo), **adam_of(ppo))
        self.generator = torch.Generator().manual_seed(config.seed)
        self.collector = Collector(envs, ppo.rollout, ppo.reward_scale, config.seed)
        self._envs, self._pool, self._draws = envs, ThreadPoolExecutor(1), draws
        apart = ppo.learns_apart(available_cores(), config.network)
        self._beside = ThreadPoolExecutor(1) if apart else None
        self.columns = ("episodes", "reward", *metrics, *Losses._fields, "lr")
        self.iteration = 0
        self.lr = ppo.lr  # of the last update
        self.pending: Collected | None = None

    @classmethod
    def make(cls, config: TrainConfig, scheduler: Scheduler, setup: Setup) -> "PpoLearner":
        """The learner of a scheduler in its environments. Raises ConfigError where they do not fit into memory."""
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
        """How many environment steps were learned from."""
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
        set_rate(self.optimizer, self.next_rate())
        precision = autocast(self.ppo, _CPU)
        losses = update_ppo(
            self._learning, self.optimizer, collected.rollout, self.ppo, self.generator, precision, self._beside
        )
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
        """The rate with which the next update learns."""
        self.lr = self.ppo.rate_at(self.steps / self.ppo.steps)
        return self.lr

    def _collect(self) -> Collected:
        """A rollout by the policy as it was when an update last began or ended."""
        with autocast(self.ppo, _CPU):
            return self.collector.collect(self._acting, None if self.ppo.overlap else self._beside)

    def policy(self) -> ChooseAll:
        """The network's choices, as a deployed policy makes them."""
        return NetworkActor(copy.deepcopy(self.network), self._draws).together

    def weights(self) -> dict[str, torch.Tensor]:
        """The weights of the network, by name."""
        return self.network.state_dict()

    def close(self) -> None:
        """End the environments, for whose Batsims a thread may wait, and the threads."""
        self._envs.close()
        for pool in (self._pool, self._beside):
            if pool is not None:
                pool.shutdown()

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
    critics = [parameter for name, parameter in parameters.items() if _is_critics(name)]
    others = [parameter for name, parameter in parameters.items() if not _is_critics(name)]
    return [{"params": others}, {"params": critics, "share": ppo.critic_lr / ppo.lr}]


def _is_critics(name: str) -> bool:
    """Whether a parameter with this name is the critic's, also in what `quick` makes of a network."""
    return name.removeprefix("network.").startswith("critic.")


def adam_of(ppo: PpoConfig) -> dict[str, Any]:
    """Adam's settings; eps as of the reference implementations of PPO."""
    return {"lr": ppo.lr, "eps": 1e-5, "fused": True}


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Let an optimiser of `by_rate` learn at this rate from now on."""
    for group in optimizer.param_groups:
        now = rate * group.get("share", 1.0)
        if isinstance(group["lr"], Tensor):  # a CUDA graph reads it
            group["lr"].fill_(now)
        else:
            group["lr"] = now
