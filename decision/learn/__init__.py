"""Learning schedulers: networks, PPO, evolution, checkpoints, and learned policies where policies run.

Design
------
`ppo` is the algorithm on one page; `collector` lets a policy act in many environments side by side; `learner` puts
both in turn. `evolution` is the other algorithm, and `ranking` what it learns: list scheduling, judged by whole
schedules. `training` adds to either curves, checkpoints and a state from which a stopped run goes on bit by bit. With
`overlap` a rollout is collected while the learner still works on the one before it, so the policy that acts is one
update old. It is old by exactly one, however fast either is, so a seed still gives one result; PPO's ratios are to the
policy that acted. On two cores, taking turns with both is faster by a seventh. Rejected: actors that take whatever
weights are newest, which learn the same in no two runs.

Why two: PPO learns DBF to the quality of the best heuristics, but its discounted sums say little of a mean over all
jobs that a few starved ones decide; rewards for slowdown and waiting time (tried: 2 million steps, discount 0.998)
halved the slowdown at one and a half times the wait. A hundred numbers that compiled schedules are made with are
learned from the means themselves.

What can be learned is a table, `config.SCHEDULERS`: settings of an environment, networks that fit it, a preset. The
rest is one for all, so that the schedulers which deep back-filling is compared with are trained, resumed, deployed and
evaluated as it is. Rejected: a module and a command for each of them.

Networks get features that are computed once per observation with numpy (`Network.prepare`): sorting a cluster's cores
costs as much as the whole network, and a rollout is learned from several times.

torch is imported by those modules only that compute with it. `checkpoint` and `config` do not, so that a checkpoint
can be shown without; importing this package makes ``*.ckpt`` a policy's name (`decision.policies.find_policy`), and
torch is loaded when one is named. A learned policy runs torch on one row in one thread: the forward pass written
again in numpy would save a tenth of a millisecond, and would be the network a second time.
"""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from decision.model.errors import ConfigError
from decision.policies.base import Policy
from decision.policies.registry import register_loader
from decision.policies.settings import refuse_unknown

__all__ = ["SHIPPED", "find_checkpoint", "load_policy", "with_torch"]

_MODELS = Path(__file__).parent / "models"
SHIPPED = tuple(sorted(file.stem for file in _MODELS.glob("*.ckpt")))  # learned policies that come with the package


def load_policy(name: str, options: Mapping[str, Any]) -> Policy:
    """The policy of a checkpoint, named by its file, or of a shipped one.

    Raises:
        ConfigError: if torch is not installed, or there are options: it has none.
        InputError: if the file is no checkpoint that this package can use.
    """
    refuse_unknown(name, options, ())
    policy: Policy = with_torch("deploy").learned_policy(find_checkpoint(name))
    return policy


def with_torch(module: str) -> ModuleType:
    """A module of this package that computes with torch.

    Raises:
        ConfigError: if what it needs is not installed.
    """
    try:
        return import_module(f"{__name__}.{module}")
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "gymnasium"):
            raise
        raise ConfigError(f"learned policies need {error.name}: pip install 'decision[learn]'") from None


def find_checkpoint(policy: str) -> Path | None:
    """The checkpoint of a policy that is named by its file, or of one that is shipped; None for any other."""
    if policy.endswith(".ckpt"):
        return Path(policy)
    return _MODELS / f"{policy}.ckpt" if policy in SHIPPED else None


for _name in ("*.ckpt", *SHIPPED):
    register_loader(_name, load_policy)
