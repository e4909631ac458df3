"""Several trainings of one shape as one: their networks are multiplied together, their environments stepped in turn.

Each seed learns what it learns alone, to rounding: it has its own minibatches, gradient norm and moments of Adam. On a
GPU, where a training waits for launches and copies far more than for products, many take little longer than one; one
alone learns here, too. There a step of acting and a minibatch are CUDA graphs, draws are made on the device, rollouts
stay there, and nothing waits for it within an update.
"""

import copy
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call

from decision.model.computer import available_cores
from decision.model.errors import ConfigError

from .acting import Collected, Finished, Rollout, draw_actions, gumbel
from .config import PpoConfig
from .networks import Network
from .ppo import Losses, Minibatch, PpoLearner, adam_of, advantages, by_rate, losses_of, ppo_loss, set_rate
from .weights import autocast, device_of

_WARM = 3  # calls before a graph is recorded
_PER_THREAD = 32  # environments at least, or handing them over takes longer than stepping them


class _Whole(nn.Module):
    """A network whose shapes do not depend on the mask, as graphs and batched products want it."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        return self.network.actor(features).float(), self.network.value(features).float()


class StackedNetwork:
    """S networks of one shape.

    Attributes:
        parameters: by name; (S, ...) where there are several.

    Args:
        networks: which stay as they are.
        device: where the copies compute.
    """

    def __init__(self, networks: Sequence[Network], device: torch.device) -> None:
        self.number = len(networks)
        self._one = copy.deepcopy(networks[0]).to(device)
        self._whole = _Whole(self._one)
        if self.number == 1:
            self.parameters: dict[str, Tensor] = dict(self._one.named_parameters())
            return
        states = [network.state_dict() for network in networks]
        self.parameters = {
            name: torch.stack([state[name] for state in states]).to(device).requires_grad_() for name in states[0]
        }

    def __call__(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """(S, n, F) features to (S, n, A) logits and (S, n) values."""
        if self.number == 1:
            return tuple(output.unsqueeze(0) for output in self._whole(features[0]))
        parameters = {f"network.{name}": parameter for name, parameter in self.parameters.items()}
        return torch.vmap(partial(functional_call, self._whole))(parameters, (features,))

    def values(self, member: int, features: Tensor) -> Tensor:
        """(n,) of (n, F) features, by one of the networks."""
        if self.number == 1:
            return self._one.value(features).float()
        parameters = {f"network.{name}": stacked[member] for name, stacked in self.parameters.items()}
        return functional_call(self._whole, parameters, (features,))[1]

    def member(self, which: int) -> dict[str, Tensor]:
        """The parameters of one of the networks, on the CPU."""
        return {name: self.part_of(stacked, which) for name, stacked in self.parameters.items()}

    def part_of(self, column: Tensor, which: int) -> Tensor:
        """What belongs to one of the networks, on the CPU."""
        return (column if self.number == 1 else column[which]).detach().to("cpu", copy=True)

    def joined(self, columns: Sequence[Tensor]) -> Tensor:
        """What belongs to each, where the networks are."""
        there = next(iter(self.parameters.values())).device
        return (columns[0] if self.number == 1 else torch.stack(list(columns))).to(there, copy=True)

    def clip(self, gradients: Sequence[Tensor], most: float) -> None:
        """Shorten the gradients of each network to a norm, as torch's clip_grad_norm_ does."""
        flat = [gradient.view(self.number, -1) for gradient in gradients]
        norm = torch.stack([torch.linalg.vector_norm(gradient, dim=1) for gradient in flat]).norm(dim=0)
        scale = (most / (norm + 1e-6)).clamp(max=1.0)
        for gradient in flat:
            gradient.mul_(scale.unsqueeze(1))


def why_alone(learners: Sequence[PpoLearner]) -> str:
    """Why these cannot learn together; empty where they can."""
    first = learners[0]
    shapes = [{name: tensor.shape for name, tensor in learner.network.state_dict().items()} for learner in learners]
    if any(shape != shapes[0] for shape in shapes) or any(learner.ppo != first.ppo for learner in learners):
        return "their networks or what they learn with differ"
    if any((each.iteration, each.pending is None) != (first.iteration, first.pending is None) for each in learners):
        return "one is further than another"
    if len(learners) > 1 and first.ppo.target_kl:
        return "learn.target_kl ends each one's updates at another time"
    if len(learners) > 1 and any(isinstance(each, nn.RNNBase) for each in first.network.modules()):
        return "recurrent networks are not multiplied together"
    return ""


class PpoStack:
    """PPO of several learners at once.

    Args:
        learners: whose networks, optimisers and environments these are; as `hand_back` left them.

    Raises:
        ConfigError: if they cannot learn together, or the config asks for a GPU and there is none.
    """

    def __init__(self, learners: Sequence[PpoLearner]) -> None:
        if reason := why_alone(learners):
            raise ConfigError(f"these trainings cannot learn together: {reason}")
        self.learners, self._ppo = learners, learners[0].ppo
        self.device = device_of(self._ppo)
        self._graphs = self.device.type == "cuda"
        self.network = StackedNetwork([learner.network for learner in learners], self.device)
        settings = adam_of(self._ppo)
        if self._graphs:
            settings |= {"lr": torch.tensor(self._ppo.lr, device=self.device), "capturable": True}
        self._optimizer = torch.optim.Adam(by_rate(self.network.parameters, self._ppo), **settings)
        for group in self._optimizer.param_groups:  # a rate of its own, not one tensor for all
            group["lr"] = group["lr"].clone() if self._graphs else group["lr"]
        self._take_moments()
        environments = len(learners) * self._ppo.envs
        workers = min(len(learners), available_cores(), max(1, environments // _PER_THREAD))
        self._parts = np.array_split(np.arange(len(learners)), workers)
        self._pool = ThreadPoolExecutor(max(1, workers - 1))
        self._acting = _Acting(self)
        self._update: _Update | None = None

    def iterate(self) -> list[dict[str, float]]:
        """As `PpoLearner.iterate`, of each; a rollout beside an update is made before it, by the policy of then."""
        pending = [learner.pending for learner in self.learners]
        collected = [each for each in pending if each is not None]
        if len(collected) < len(pending):
            collected = self.collect()
        following: Sequence[Collected | None] = [None] * len(pending)
        if self._ppo.overlap and not self.learners[0].last:
            following = [Collected(_copied(each.rollout), *each[1:]) for each in self._collect_beside(collected)]
        losses = self.learn([each.rollout for each in collected])
        rows = []
        for learner, rollout, loss, later in zip(self.learners, collected, losses, following, strict=True):
            learner.pending = later
            rows.append(learner.row(rollout, loss))
        return rows

    def _collect_beside(self, collected: list[Collected]) -> list[Collected]:
        """The next rollouts, before what is learned from `collected`, which shares the device's buffers with them."""
        for k, each in enumerate(collected):
            collected[k] = Collected(_copied(each.rollout), *each[1:])
        return self.collect()

    def hand_back(self) -> None:
        """Give the learners what they have learned: then their state, policy and weights are those of now."""
        moments = self._optimizer.state
        for which, learner in enumerate(self.learners):
            learner.take_weights(self.network.member(which))
            for name, parameter in learner.network.named_parameters():
                known = moments.get(self.network.parameters[name], {})
                learner.optimizer.state[parameter] = {
                    key: value.detach().to("cpu", copy=True) if key == "step" else self.network.part_of(value, which)
                    for key, value in known.items()
                }
            set_rate(learner.optimizer, learner.lr)
            if learner.pending is not None:
                here = Rollout(*(column.cpu() for column in learner.pending.rollout))
                learner.pending = learner.pending._replace(rollout=here)

    def _take_moments(self) -> None:
        """Adam's, where the learners have some."""
        parameters = [dict(learner.network.named_parameters()) for learner in self.learners]
        for name, parameter in self.network.parameters.items():
            pairs = zip(self.learners, parameters, strict=True)
            known = [learner.optimizer.state.get(named[name]) for learner, named in pairs]
            if not all(known):
                continue
            there = self.device if self._graphs else "cpu"
            self._optimizer.state[parameter] = {
                key: known[0][key].to(there, copy=True)  # type: ignore[index]
                if key == "step"
                else self.network.joined([each[key] for each in known])  # type: ignore[index]
                for key in known[0]  # type: ignore[union-attr]
            }

    @torch.no_grad()
    def collect(self) -> list[Collected]:
        """A rollout of each of the learners, side by side."""
        steps, shape = self._ppo.rollout, (len(self.learners), self._ppo.envs)
        finished = [Finished() for _ in self.learners]
        reward, last = (np.empty((steps, *shape), np.float32) for _ in range(2))
        ended = np.empty((steps, *shape), np.bool_)
        self._acting.begin(np.stack([learner.collector.uniform() for learner in self.learners], 1))
        for t in range(steps):
            action = self._acting.act()

            def move(members: NDArray[np.int64], action: NDArray[np.int64] = action, t: int = t) -> None:
                for k in members:
                    moved = self.learners[k].collector.step(action[k], partial(self._values, k), finished[k])
                    reward[t, k], ended[t, k], last[t, k] = moved

            others = [self._pool.submit(move, part) for part in self._parts[1:]]
            move(self._parts[0])
            for other in others:
                other.result()
        features, mask, chosen, log_prob, value = self._acting.columns
        after = self._acting.value_now().cpu()
        paid, over, at_end = (torch.from_numpy(each) for each in (reward, ended, last))
        there = value.cpu()
        following = torch.where(over, at_end, torch.cat([there[1:], after.unsqueeze(0)]))
        return [
            Collected(
                Rollout(
                    *(column[:, k] for column in (features, mask, chosen, log_prob, there)),
                    *(column[:, k] for column in (paid, following, over)),
                ),
                done.count,
                done.means(),
            )
            for k, done in enumerate(finished)
        ]

    def _values(self, member: int, observation: NDArray[np.float32]) -> NDArray[np.float32]:
        with torch.no_grad(), autocast(self._ppo, self.device):
            features = torch.from_numpy(self.learners[member].network.prepare(observation)).to(self.device)
            return self.network.values(member, features).cpu().numpy()

    def learn(self, rollouts: Sequence[Rollout]) -> list[Losses]:
        ppo = self._ppo
        for learner in self.learners:
            rate = learner.next_rate()
        set_rate(self._optimizer, rate)
        gained = torch.stack([advantages(each, ppo.discount, ppo.gae_lambda).flatten() for each in rollouts])
        if self._update is None:
            self._update = _Update(self, rollouts[0])
        means = self._update.run(rollouts, gained).cpu()
        old = [each.value.flatten() for each in rollouts]
        return [losses_of(mean, more + mine, mine) for mean, more, mine in zip(means, gained, old, strict=True)]

    def close(self) -> None:
        """End the threads and the learners."""
        self._pool.shutdown()
        for learner in self.learners:
            learner.close()


class _Acting:
    """Looks, draws and remembers, on the device: a step is one graph there."""

    def __init__(self, stack: PpoStack) -> None:
        self._stack, self._device, ppo = stack, stack.device, stack.learners[0].ppo
        self._collectors = [learner.collector for learner in stack.learners]
        self._networks = [learner.network for learner in stack.learners]
        features, mask = self._look()
        pinned = self._device.type == "cuda"
        self._seen = [torch.from_numpy(each.copy()) for each in (features, mask)]
        if pinned:
            self._seen = [each.pin_memory() for each in self._seen]
        self._features, self._mask = (each.to(self._device, copy=True) for each in self._seen)
        shape = features.shape[:2]
        self._action = torch.zeros(shape, dtype=torch.int64, device=self._device)
        self._chosen = torch.zeros(shape, dtype=torch.int64, pin_memory=pinned)
        self._noise = torch.zeros((ppo.rollout, *mask.shape), device=self._device)
        self._t = torch.zeros(1, dtype=torch.int64, device=self._device)
        kinds = (self._features, self._mask, self._action, self._noise[0, ..., 0], self._noise[0, ..., 0])
        self.columns = tuple(
            torch.zeros((ppo.rollout, *each.shape), dtype=each.dtype, device=self._device) for each in kinds
        )
        self._replay = _recorded(self._step, self._device)

    def _look(self) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        features = np.stack([n.prepare(c.observation) for n, c in zip(self._networks, self._collectors, strict=True)])
        return features, np.stack([c.mask for c in self._collectors])

    def begin(self, uniform: NDArray[np.float32]) -> None:
        """A rollout begins, whose draws are made of (T, S, N, A) numbers between 0 and 1."""
        self._noise.copy_(gumbel(torch.from_numpy(uniform).to(self._device)))
        self._t.zero_()

    def act(self) -> NDArray[np.int64]:
        """(S, N) choices, drawn for the states that the environments are in."""
        self._show()
        self._replay()
        self._chosen.copy_(self._action, non_blocking=True)
        if self._device.type == "cuda":
            torch.cuda.current_stream().synchronize()
        return self._chosen.numpy().copy()

    @torch.no_grad()
    def value_now(self) -> Tensor:
        """(S, N) of the states that the environments are in."""
        self._show()
        with autocast(self._stack.learners[0].ppo, self._device):
            return self._stack.network(self._features)[1]

    def _show(self) -> None:
        for there, here, now in zip((self._features, self._mask), self._seen, self._look(), strict=True):
            here.numpy()[:] = now
            there.copy_(here, non_blocking=True)

    @torch.no_grad()
    def _step(self) -> None:
        with autocast(self._stack.learners[0].ppo, self._device):
            logits, value = self._stack.network(self._features)
        noise = self._noise.index_select(0, self._t)[0]
        flat = (each.flatten(0, 1) for each in (logits, self._mask, noise))
        action, log_prob = (each.view(value.shape) for each in draw_actions(*flat))
        self._action.copy_(action)
        for column, now in zip(self.columns, (self._features, self._mask, action, log_prob, value), strict=True):
            column.index_copy_(0, self._t, now.unsqueeze(0))
        self._t.add_(1).remainder_(len(self._noise))


class _Update:
    """Goes over rollouts in minibatches, each seed in its own order; a whole minibatch is one graph."""

    def __init__(self, stack: PpoStack, like: Rollout) -> None:
        self._stack, self._device = stack, stack.device
        self._ppo = stack.learners[0].ppo
        self._optimizer = stack._optimizer
        number, steps = len(stack.learners), like.action.numel()

        def room(column: Tensor) -> Tensor:
            shape = (number, steps, *column.shape[2:])
            return torch.zeros(shape, dtype=column.dtype, device=self._device)

        self._features = room(like.features)
        self._whole = Minibatch(*map(room, (like.mask, like.action, like.log_prob, like.value, *[like.value] * 2)))
        self._which = torch.arange(number, device=self._device).unsqueeze(1)
        self._order = torch.zeros((number, min(self._ppo.minibatch, steps)), dtype=torch.int64, device=self._device)
        self._sums = torch.zeros((number, 5), device=self._device)
        self._replay: Callable[[], None] | None = None

    def run(self, rollouts: Sequence[Rollout], gained: Tensor) -> Tensor:
        """Learn; (S, 5) means over the minibatches of what `ppo_loss` says."""
        ppo = self._ppo
        for k, rollout in enumerate(rollouts):
            self._features[k].view_as(rollout.features).copy_(rollout.features, non_blocking=True)
            for room, column in zip(self._whole, rollout[1:5], strict=False):
                room[k].view_as(column).copy_(column, non_blocking=True)
        self._whole.advantage.copy_(gained)
        self._whole.returns.copy_(self._whole.advantage + self._whole.value)
        if self._replay is None:  # recording it calls it, which must change nothing
            with _Unchanged(self._stack):
                self._replay = _recorded(lambda: self._learn(self._order), self._device)
        self._sums.zero_()
        minibatches = 0
        for _ in range(ppo.epochs):
            drawn_orders = [
                torch.randperm(gained.shape[1], generator=learner.generator) for learner in self._stack.learners
            ]
            orders = torch.stack(drawn_orders).to(self._device)
            before = self._sums.clone()
            first = minibatches
            for rows in orders.split(ppo.minibatch, 1):
                if rows.shape == self._order.shape:
                    self._order.copy_(rows)
                    self._replay()
                else:
                    self._learn(rows)
                minibatches += 1
            # only one learns here with a target (`why_alone`): so the first one's divergence is asked for
            if ppo.target_kl and float((self._sums - before)[0, 3]) / (minibatches - first) > ppo.target_kl:
                break
        return self._sums / minibatches

    def _learn(self, rows: Tensor) -> None:
        parameters = list(self._stack.network.parameters.values())
        batch = Minibatch(*(column[self._which, rows] for column in self._whole))
        with autocast(self._ppo, self._device):
            logits, value = self._stack.network(self._features[self._which, rows])
        # the sum of the losses: no parameter of one network is in another's, so each has its own gradient
        loss, terms = torch.vmap(partial(_loss, config=self._ppo))(logits, value, batch)
        gradients = [each.contiguous() for each in torch.autograd.grad(loss.sum(), parameters)]
        self._stack.network.clip(gradients, self._ppo.max_gradient)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        self._optimizer.step()
        self._sums += terms


def _loss(logits: Tensor, value: Tensor, batch: Minibatch, config: PpoConfig) -> tuple[Tensor, Tensor]:
    return ppo_loss(logits, value, batch.weighed(config), config)


def _recorded(call: Callable[[], None], device: torch.device) -> Callable[[], None]:
    """A function of nothing but tensors that stay where they are: on a GPU as a graph, which is one launch."""
    if device.type != "cuda":
        return call
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(_WARM):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


class _Unchanged:
    """What learning changes is afterwards as it was, in the same tensors."""

    def __init__(self, stack: PpoStack) -> None:
        self._parameters, self._state = stack.network.parameters, stack._optimizer.state

    def __enter__(self) -> None:
        self._before = {name: each.detach().clone() for name, each in self._parameters.items()}
        self._moments = {each: {k: v.clone() for k, v in known.items()} for each, known in self._state.items()}

    @torch.no_grad()
    def __exit__(self, *_: object) -> None:
        for name, each in self._parameters.items():
            each.copy_(self._before[name])
        for each, known in self._state.items():
            for key, value in known.items():
                then = self._moments.get(each, {}).get(key)
                value.zero_() if then is None else value.copy_(then)


def _copied(rollout: Rollout) -> Rollout:
    return Rollout(*(column.clone() for column in rollout))
