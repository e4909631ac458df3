"""Runs each shipped policy under each kind of guard, and prints a line before each run and one after it.

For a process of its own: a loop of machine code that has no end does not end for an exception. Arguments: how many
worlds for each.
"""

import sys

import numpy as np

from decision.engine.rules import EngineOptions
from decision.model.errors import ConfigError, DeadlockError
from decision.policies import find_policy
from decision.policies.registry import list_policies
from decision.simulation import simulate_workloads
from helpers.policy_cases import POWERS, random_platform, random_workload
from helpers.policy_toys import platform as servers

GUARDS = ("0", "3", "600", "1x", "1.2x", "1.5x", "5x")
ELSEWHERE = {"slurm", "kamelot"}  # kamelot has no guard, slurm is no policy of hosts


def names() -> list[str]:
    """Names of policies that can have a guard, and of those that switch hosts with each way to do it."""
    found = []
    for line in list_policies():
        plain = line.name.isascii() and not any(sign in line.name for sign in ".:,")
        if plain and line.name.lower() == line.name and line.name not in ELSEWHERE:
            found.append(line.name)
    return found + [f"{name},power={power}" for name in ("easy", "sjf+first-fit") for power in POWERS]


def main(worlds: int) -> None:
    """All of them, on platforms whose hosts sleep."""
    number = 0
    for name in names():
        for guard in GUARDS:
            number += 1
            for seed in range(worlds):
                rng = np.random.default_rng((number, seed))
                hosts, step = int(rng.integers(2, 10)), float(rng.choice([0.3, 1.0, 10.0]))
                platform = random_platform(rng, hosts, links=False)
                if rng.random() < 0.4:
                    platform = servers(hosts, sleeps=True, cores=int(rng.integers(1, 4)))
                work = random_workload(rng, "w0", hosts, step, endless=False)
                print(f"{name},guard={guard} seed {seed}", flush=True)
                try:
                    policy = find_policy(name, {"guard": guard})
                    record = simulate_workloads(platform, [work], policy, engine_options=EngineOptions(energy=True))
                except DeadlockError:
                    raise
                except ConfigError as error:
                    print(f"refused: {error}", flush=True)
                    continue
                ended = len(record.jobs.id) == len(work.jobs)
                print("done" if ended else f"{len(record.jobs.id)} of {len(work.jobs)} jobs", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
