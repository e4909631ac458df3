"""Whether learning on this machine's GPU works, and how fast against a core: what ``scripts/gpu-check`` runs.

Each algorithm makes some updates of a wide network on either device, from the same choices and the same first weights.
In single precision both must come to nearly the same losses; the speed is that of the default precision.
"""

import sys
import time
from contextlib import closing

import torch

from decision.envs.demonstrations import record_schedules, replay_schedules
from decision.envs.setup import equal_hosts
from decision.formats import load_workload
from decision.learn.config import load_config
from decision.learn.data_learner import BcLearner, CrrLearner
from decision.learn.learner import PpoLearner
from decision.learn.sac_learner import SacLearner
from decision.learn.schedulers import choosing_setup
from decision.learned.base import ChoosingScheduler
from decision.learned.registry import find_scheduler
from decision.model.errors import ConfigError

_HOSTS, _CHOICES = 10, 2000
_NEAR = 0.02  # of a loss: what devices may differ by, in single precision
_WIDE = ("network.hidden=[128]",)
_BATCH = "learn.batch=256"
_LEARNERS = {
    "bc": (BcLearner, (_BATCH, "learn.steps=200")),
    "crr": (CrrLearner, (_BATCH, "learn.steps=200")),
    "sac": (SacLearner, (_BATCH, "learn.offline=100", "learn.warmup=1", "learn.updates=0.2", "learn.steps=1024")),
    "ppo": (PpoLearner, ("learn.envs=16", "learn.rollout=64", "learn.steps=8192")),
}


def check(devices: tuple[str, ...] = ("cpu", "cuda"), rounds: int = 2) -> bool:
    """Learn a little with each algorithm and print what came out; whether all went well.

    Args:
        devices: where; the first is what others are compared with.
        rounds: iterations of each.
    """
    fine = True
    torch.set_num_threads(1)  # several wait for one another on a busy machine
    print(f"{'algorithm':10} {'device':7} {'loss':>10} {'seconds':>9} {'times as fast':>14}")
    for name in _LEARNERS:
        losses, first = [], 0.0
        for device in devices:
            try:
                loss, _ = _learn(name, device, "float32", 1)
                _, seconds = _learn(name, device, "auto", rounds)
            except (ConfigError, RuntimeError) as error:
                print(f"{name:10} {device:7} {error}")
                fine = False
                continue
            losses.append(loss)
            first = first or seconds
            print(f"{name:10} {device:7} {loss:10.4f} {seconds:9.2f} {first / seconds:14.1f}")
        if losses and max(losses) - min(losses) > _NEAR * max(map(abs, losses)) + _NEAR:
            print(f"{name}: the devices' losses differ by more than {_NEAR:.0%}")
            fine = False
    return fine


def _learn(algorithm: str, device: str, precision: str, rounds: int) -> tuple[float, float]:
    """The policy's loss of the first iteration, and the seconds of one, the first left out where there are more."""
    kind, changes = _LEARNERS[algorithm]
    own = (f"learn.method={algorithm}", f"learn.device={device}", f"learn.precision={precision}")
    config = load_config("green-sac", [*own, *_WIDE, *changes])
    scheduler = find_scheduler("green")
    assert isinstance(scheduler, ChoosingScheduler)
    workload = load_workload("green")
    setup = choosing_setup(config, workload, equal_hosts(_HOSTS))
    if kind is PpoLearner:
        learner = PpoLearner.make(config, scheduler, setup)
    else:
        choices = replay_schedules(setup, record_schedules("qos+first-fit", setup, _CHOICES, 0))
        learner = kind.make(config, scheduler, setup, choices)  # type: ignore[attr-defined]
    with closing(learner):
        loss = float(learner.iterate()["policy_loss"])
        began, more = time.perf_counter(), max(rounds - 1, 1)
        for _ in range(more):
            learner.iterate()
        if device == "cuda":
            torch.cuda.synchronize()
        return loss, (time.perf_counter() - began) / more


if __name__ == "__main__":
    sys.exit(0 if check() else 1)
