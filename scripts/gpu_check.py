"""Whether learning on this machine's GPU works, and how long the papers' own agents need there: `scripts/gpu-check`.

Each agent is one process, which compiles its kernels beside the others and then measures alone: how many steps a second
it acts, how many it learns from, and what its whole budget would take. The first lines say whether an update there is
that of the CPU. Exit code 1 where a GPU is missing, or something fails on it.
"""

import argparse
import fcntl
import json
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import torch

from decision.files.generate.grid5000 import find_cluster
from decision.files.generate.paper_workloads import PUBLISHED_TRACES, grid5000_days, topology_workload
from decision.files.generate.platforms import Wanted, grid5000_cluster
from decision.papers.launchpad import world
from decision.papers.packing.claims import made_half
from decision.papers.topology.parts import TREES, platform_of
from decision.policies.runtimes import apply_estimates
from decision.rl.envs.setup import Setup, equal_hosts
from decision.rl.learning.config import TrainConfig, load_config
from decision.rl.learning.ppo import PpoLearner
from decision.rl.learning.sac import SacLearner
from decision.rl.learning.schedulers import choosing_setup
from decision.rl.learning.stack import PpoStack
from decision.rl.schedulers.base import ChoosingScheduler, find_scheduler

AGENTS = ("dbf-paper", "packing-nn1", "deepscheduling-paper", "repair-paper", "green-paper")  # presets
_NEAR = 0.02  # of a loss: what devices may differ by, in single precision
_SMALL = ("network.hidden=[64, 64]", "learn.envs=4", "learn.rollout=64", "learn.minibatch=64", "learn.epochs=2")


def config_of(agent: str, *changes: str, seed: int = 0) -> TrainConfig:
    """Of an agent; Launchpad's without its phase on recorded choices, which nothing is recorded for here."""
    own = ("learn.offline=0", "learn.warmup=1") if agent == "green-paper" else ()
    return load_config(agent, [*own, *changes], seed=seed)


def setup_of(config: TrainConfig) -> Setup:
    """Environments like those of the agent's paper."""
    rng = np.random.default_rng(0)
    if config.scheduler == "repair":
        jobs = apply_estimates(topology_workload(rng, 10_000), "exact", rng)
        return choosing_setup(config, jobs, platform_of(TREES["text"]))
    if config.scheduler == "deepscheduling":
        days = grid5000_days(rng, PUBLISHED_TRACES["orion"], slice(0, 300))
        return choosing_setup(
            config, days, grid5000_cluster(Wanted(cluster=find_cluster("orion"), by_core=True, power=True))
        )
    if config.scheduler == "green":
        made = world(10, True, 0, 10_000)
        return choosing_setup(config, made.workload, made.platform, made.events)
    jobs = made_half(0, "WL1_RND", "a", 5_000)
    return choosing_setup(config, jobs, equal_hosts(jobs.nb_res))


def learners_of(agent: str, setup: Setup, number: int, *changes: str) -> list[PpoLearner]:
    """So many seeds of an agent that learns by PPO."""
    scheduler = find_scheduler(config_of(agent).scheduler)
    return [PpoLearner.make(config_of(agent, *changes, seed=k), scheduler, setup) for k in range(number)]


def same_as_on_the_cpu(device: str, setup: Setup) -> dict[str, Any]:
    """Whether three updates of two small networks there are those on the CPU: their losses."""
    losses = []
    for where in ("cpu", device):
        changes = (*_SMALL, f"learn.device={where}", "learn.precision=float32")
        with closing(PpoStack(learners_of("dbf-paper", setup, 2, *changes))) as stack:
            losses.append([row["policy_loss"] + row["value_loss"] for _ in range(3) for row in stack.iterate()])
    near = np.abs(np.subtract(*losses)).max() <= _NEAR * np.abs(losses).max()
    return {"agent": "same as on the CPU", "cpu": losses[0], device: losses[1], "fine": bool(near)}


def measure(agent: str, device: str, seconds: float, seeds: int, *changes: str) -> dict[str, Any]:
    """Steps a second, and hours to the budget, of one seed where `seeds` learn together."""
    config = config_of(agent, f"learn.device={device}", *changes)
    began = time.perf_counter()
    setup = setup_of(config)
    if config.scheduler == "green":
        rates = _sac_rates(config, setup, seconds)
        updates = config.learn.updates  # type: ignore[union-attr]
    else:
        rates = _ppo_rates(agent, setup, device, seconds, seeds, *changes)
        updates = 1.0
    acts, learns, compiled = rates
    hours = config.steps * (1 / acts + updates / learns) / 3600
    facts = {"acts/s": acts, "learns/s": learns, "steps": config.steps, "hours to the budget": hours}
    return {"agent": agent, "seeds": seeds, **facts, "compiled after": compiled - began, "fine": True}


def _ppo_rates(
    agent: str, setup: Setup, device: str, seconds: float, seeds: int, *changes: str
) -> tuple[float, float, float]:
    learners = learners_of(agent, setup, seeds, f"learn.device={device}", *changes)
    steps = learners[0].ppo.envs * learners[0].ppo.rollout
    with closing(PpoStack(learners)) as stack:
        collected = stack.collect()
        rollouts = [each.rollout for each in collected]
        stack.learn(rollouts)
        compiled = time.perf_counter()
        return steps * _rate(stack.collect, seconds), steps * _rate(lambda: stack.learn(rollouts), seconds), compiled


def _sac_rates(config: TrainConfig, setup: Setup, seconds: float) -> tuple[float, float, float]:
    scheduler = find_scheduler("green")
    assert isinstance(scheduler, ChoosingScheduler)
    with closing(SacLearner.make(config, scheduler, setup, None)) as learner:
        learner.act()
        learner.learn(1)
        compiled = time.perf_counter()
        acts = _rate(learner.act, seconds) * learner.act_steps
        return acts, _rate(lambda: learner.learn(20), seconds) * 20, compiled


def _rate(call: Any, seconds: float) -> float:
    """Calls a second; half of the seconds, or one call."""
    began, calls = time.perf_counter(), 0
    while calls == 0 or time.perf_counter() - began < seconds / 2:
        call()
        calls += 1
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return calls / (time.perf_counter() - began)


def _one(options: argparse.Namespace) -> dict[str, Any]:
    """What the process of an agent does; others compile meanwhile, and wait with measuring."""
    torch.set_num_threads(1)
    changes = tuple(options.set or ())
    setup = setup_of(config_of(options.one if options.one != _SAME else "dbf-paper"))
    if options.one in AGENTS:
        short = () if options.one == "green-paper" else ("learn.rollout=4", "learn.minibatch=8", "learn.epochs=1")
        if short:  # compiles, beside others
            with closing(PpoStack(learners_of(options.one, setup, 1, *short, "learn.device=cpu"))) as stack:
                stack.iterate()
    with Path(options.lock).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if options.one == _SAME:
            return same_as_on_the_cpu(options.device, setup)
        return measure(options.one, options.device, options.seconds, options.seeds, *changes)


_SAME = "same"


def main() -> int:
    """Start a process for each agent, and print what they found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("agents", nargs="*", help=f"of {', '.join(AGENTS)}; default: all")
    parser.add_argument("--seconds", type=float, default=20.0, help="of measuring, for each agent")
    parser.add_argument("--seeds", type=int, default=1, help="that learn together; one where networks are recurrent")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--set", action="append", help="a setting of the agents, as of decision train")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--lock", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(_one(options)))
        return 0
    if options.device == "cuda" and not torch.cuda.is_available():
        print("torch finds no GPU here", file=sys.stderr)
        return 1
    print(f"python {sys.version.split()[0]}, torch {torch.__version__}, {_name(options.device)}", flush=True)
    print(f"{'agent':22} {'seeds':>5} {'acts/s':>10} {'learns/s':>10} {'steps':>12} {'hours':>8} {'compiled (s)':>13}")
    rows = []
    with tempfile.NamedTemporaryFile() as lock:
        command = [sys.executable, __file__, *sys.argv[1:], "--lock", lock.name]
        names = [_SAME, *(options.agents or AGENTS)]
        crew = [subprocess.Popen([*command, "--one", each], stdout=subprocess.PIPE, text=True) for each in names]
        for name, process in zip(names, crew, strict=True):
            said, _ = process.communicate()
            fine = process.returncode == 0
            row = json.loads(said.splitlines()[-1]) if fine else {"agent": name, "fine": False}
            rows.append(row)
            print(_line(row), flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return 0 if all(row["fine"] for row in rows) else 1


def _name(device: str) -> str:
    return torch.cuda.get_device_name() if device == "cuda" else "CPU"


def _line(row: dict[str, Any]) -> str:
    if "acts/s" not in row:
        return f"{row['agent']:22} {'fine' if row['fine'] else 'FAILED'}"
    hours, compiled = row["hours to the budget"], row["compiled after"]
    figures = f"{row['seeds']:5} {row['acts/s']:10,.0f} {row['learns/s']:10,.0f} {row['steps']:12,}"
    return f"{row['agent']:22} {figures} {hours:8.2f} {compiled:13.1f}"


if __name__ == "__main__":
    sys.exit(main())
