"""PPO in one file, in CleanRL's way, in an environment of one's own; then what it learned as a policy.

Needs `pip install 'batsim-decision[learn]'`. 4,096 steps take some seconds and teach little.
"""

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

import decision as d

CASE, ENVS, STEPS, ITERATIONS, HEAD = ("cluster256", "lublin_256"), 8, 64, 8, 8
torch.manual_seed(1)


def observe(view):
    """Free hosts; sizes and walltimes of the first jobs."""
    jobs, seen = view.queue[:HEAD], np.zeros((2, HEAD))
    seen[:, : len(jobs)] = jobs.size / view.nb_hosts, np.minimum(jobs.walltime / 36_000, 1.0)
    return [view.nb_free / view.nb_hosts, *seen.ravel()]


envs = d.make_env(
    "dbf",
    *CASE,
    num_envs=ENVS,
    observe=observe,
    reward=lambda view: -len(view.queue) * view.elapsed / 3600,
    head=HEAD,
    tail=0,
    jobs=100,
)
width, actions = envs.single_observation_space.shape[0], envs.single_action_space.n
actor = nn.Sequential(nn.Linear(width, 64), nn.Tanh(), nn.Linear(64, actions))
critic = nn.Sequential(nn.Linear(width, 64), nn.Tanh(), nn.Linear(64, 1))
optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=3e-4, eps=1e-5)


def masked(observation, mask):
    """The choices among the valid actions."""
    return Categorical(logits=actor(observation).masked_fill(~mask, -1e9))


observation, info = envs.reset(seed=1)
for iteration in range(ITERATIONS):
    rows = []
    for _ in range(STEPS):
        seen, mask = torch.from_numpy(observation), torch.from_numpy(info["action_mask"]).bool()
        with torch.no_grad():
            choice, value = masked(seen, mask), critic(seen).squeeze(1)
            action = choice.sample()
        observation, reward, terminated, truncated, info = envs.step(action.numpy())
        over = torch.from_numpy(terminated | truncated)
        rows.append((seen, mask, action, choice.log_prob(action), value, torch.from_numpy(reward), over))
    seen, mask, action, logprob, value, reward, over = (torch.stack(column) for column in zip(*rows, strict=True))
    with torch.no_grad():  # generalised advantage estimation
        following, left, advantage = critic(torch.from_numpy(observation)).squeeze(1), 0.0, torch.zeros_like(reward)
        for t in reversed(range(STEPS)):
            goes_on = 1.0 - over[t].float()
            left = reward[t] + 0.99 * following * goes_on - value[t] + 0.99 * 0.95 * goes_on * left
            advantage[t], following = left, value[t]
    returns = (advantage + value).flatten()
    advantage = ((advantage - advantage.mean()) / (advantage.std() + 1e-8)).flatten()
    seen, mask, action, logprob = seen.flatten(0, 1), mask.flatten(0, 1), action.flatten(), logprob.flatten()
    for _ in range(4):
        for batch in torch.randperm(len(action)).split(128):
            choice = masked(seen[batch], mask[batch])
            ratio = (choice.log_prob(action[batch]) - logprob[batch]).exp()
            clipped = torch.min(ratio * advantage[batch], ratio.clamp(0.8, 1.2) * advantage[batch])
            error = (critic(seen[batch]).squeeze(1) - returns[batch]).square().mean()
            loss = -clipped.mean() + 0.5 * error - 0.01 * choice.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(f"{(iteration + 1) * ENVS * STEPS:,} steps, reward {reward.sum(0).mean():.2f}")


def choose(observation, mask):
    """The likeliest of the valid actions."""
    with torch.no_grad():
        return masked(torch.from_numpy(observation), torch.from_numpy(mask).bool()).probs.argmax().item()


mine = d.policy_from(envs, choose, "mine")
print(d.compare(*CASE, ["easy", mine], metrics=["wait"], jobs=slice(0, 300)).table.round(3).to_string())
