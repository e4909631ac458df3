"""Learning schedulers: networks, PPO, evolution, checkpoints, and learned policies where policies run.

Design
------
`ppo` is the algorithm, with what lets a policy act in many environments side by side, and takes both in turn; `stack`
computes several such trainings as one. `evolution` is the other algorithm, which judges by whole
schedules what it tries (`prices_learner` does so for the prices of hosts). `offline` learns from recorded choices
alone, by cloning or critics (`choices` has their files), and `sac` from these and from what it sees in environments.
`networks` has the kinds that `config` names. `training` adds to each curves, checkpoints and a state from
which a stopped run goes on bit by bit (`weights`); `schedulers` is what `decision train` calls, and judges meanwhile.
With `overlap` a rollout is collected while the learner still works on the one before it, so the policy that acts is one
update old. It is old by exactly one, however fast either is, so a seed still gives one result; PPO's ratios are to the
policy that acted. On two cores, taking turns with both is faster by a seventh. Rejected: actors that take whatever
weights are newest, which learn the same in no two runs.

A `Validation` says from the first minute what comes of what is learned: rewards are relative to what an episode has
seen, and may fall while waits become shorter. Its sequences of jobs are short and few, so that it costs a few per cent;
it is made at fixed steps, so that a training that was stopped leaves the same curves.

Why two: PPO learns DBF to the quality of the best heuristics, but its discounted sums say little of a mean over all
jobs that a few starved ones decide; rewards for slowdown and waiting time (tried: 2 million steps, discount 0.998)
halved the slowdown at one and a half times the wait. A hundred numbers that compiled schedules are made with are
learned from the means themselves.

What can be learned are the records of `decision.rl.schedulers`: settings of an environment, networks that fit it, a
preset. The rest is one for all, so that the schedulers which deep back-filling is compared with are trained, resumed,
deployed and evaluated as it is. Rejected: a trainer and a command for each of them.

Networks get features that are computed once per observation with numpy (`Network.prepare`): sorting a cluster's cores
costs as much as the whole network, and a rollout is learned from several times.

torch is imported by those modules only that compute with it. `checkpoint` and `config` do not, so that a checkpoint can
be shown without. `load_policy` is how ``*.ckpt`` and the names of the shipped ones become policies
(`decision.policies.registry`): those that are numbers by `checkpoint`, and those that are networks by `deploy`, for
which torch is loaded then. A learned policy runs torch on one row in one thread: the forward pass written again in
numpy would save a tenth of a millisecond, and would be the network a second time.
"""

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from decision.model.errors import DISTRIBUTION, ConfigError, how_to_install, warn_once
from decision.model.hosts import nearest
from decision.policies.loading import PolicySource
from decision.policies.options import OptionLine, PolicyLine, refuse_unknown
from decision.policies.placement.search import StartRule
from decision.policies.policy import Policy

if TYPE_CHECKING:
    from .checkpoint import GateCheck

__all__ = ["SHIPPED_MODELS", "find_checkpoint", "load_policy", "read_prices", "read_repair", "require_learning"]

_MODELS = Path(__file__).parent / "models"
SHIPPED_MODELS = tuple(sorted(file.stem for file in _MODELS.glob("*.ckpt")))  # learned policies that come with us
_FORMER = {"packing": "packer"}  # names by which they were known before: of a scheduler of another policy
SHIPPED_NAMES = (*SHIPPED_MODELS, *_FORMER)

_PRICES = _MODELS / "prices"  # they are no policies
SHIPPED_PRICES = tuple(sorted(file.stem for file in _PRICES.glob("*.ckpt")))


def load_policy(name: str, options: Mapping[str, Any]) -> Policy:
    """The policy of a checkpoint, named by its file, or of a shipped one; torch is needed where it is a network.

    Raises:
        ConfigError: if torch is not installed and needed, or for an option that it does not have, or a value that does
            not fit.
        InputError: if the file is not a checkpoint that this package can use.
    """
    from decision.rl.schedulers import find_scheduler

    from .checkpoint import parametric_policy, read_checkpoint

    refuse_unknown(name, options, (line.name for line in checkpoint_options(name)))
    checkpoint = find_checkpoint(name)
    assert checkpoint is not None
    manifest, weights = read_checkpoint(checkpoint)
    if manifest.config.network is None:
        scheduler = find_scheduler(manifest.config.scheduler)
        return parametric_policy(checkpoint, manifest, scheduler, weights, options)
    require_learning()
    from .deploy import policy_of

    return policy_of(checkpoint, manifest, weights)


def checkpoint_options(name: str) -> Sequence[OptionLine]:
    """The options of the policy of a checkpoint that is there; of any other none."""
    from decision.rl.schedulers import find_scheduler

    from .checkpoint import read_manifest

    checkpoint = find_checkpoint(name)
    if checkpoint is None or not checkpoint.exists():
        return ()
    return find_scheduler(read_manifest(checkpoint).config.scheduler).options


def read_repair(name: str) -> tuple[StartRule, int]:
    """The network of a checkpoint, or of a shipped one, for the windows' ``repair``; and the levels of its trees.

    Raises:
        ConfigError: if torch is not installed, or the checkpoint is not for such windows.
        InputError: if the file is not a checkpoint that this package can use.
    """
    checkpoint = find_checkpoint(name)
    if checkpoint is None:
        raise ConfigError(f"policy window: repair={name} is neither best nor a checkpoint (FILE.ckpt)")
    require_learning()
    from .deploy import repair_of

    network, encoder = repair_of(checkpoint)
    return network, encoder.levels


def read_prices(name: str) -> NDArray[np.float64]:
    """The weights (L - 1, N_FEATURES) of a checkpoint that ``decision train prices`` made, or of a shipped one.

    This needs no torch.

    Raises:
        ConfigError: if the checkpoint is of another scheduler, or of another version of it.
        InputError: if the file is not a checkpoint that this package can use.
    """
    from decision.rl.schedulers.prices import as_prices

    from .checkpoint import read_checkpoint, read_numbers

    path = _PRICES / f"{name}.ckpt" if name in SHIPPED_PRICES else find_checkpoint(name)
    if path is None:
        shipped = f", and {', '.join(SHIPPED_PRICES)} ships" if SHIPPED_PRICES else ""
        raise ConfigError(f"prices={name} is not a checkpoint (FILE.ckpt{shipped})")
    manifest, data = read_checkpoint(path)
    if manifest.config.scheduler != "prices":
        of = manifest.config.scheduler
        raise ConfigError(f"{path}: it is a checkpoint of {of}; prices needs one of decision train prices")
    return as_prices(str(path), manifest.encoder, read_numbers(str(path), data))


def require_learning() -> None:
    """Refuse to learn, or to run what was learned, where a package is missing that this needs.

    To be called before a module of this package is imported that computes with torch.

    Raises:
        ConfigError: naming the package, and how to install it.
    """
    for name in ("torch", "gymnasium"):
        if find_spec(name) is None:
            raise ConfigError(f"learned policies need {name}: {how_to_install('learn')}")


def find_checkpoint(policy: str) -> Path | None:
    """The checkpoint of a policy that is named by its file, or of one that is shipped; None for any other."""
    if policy.endswith(".ckpt"):
        return Path(policy)
    if policy in _FORMER:
        warn_once(f"policy {policy}: call it {_FORMER[policy]}; what decision train {policy} makes is another")
        policy = _FORMER[policy]
    return _MODELS / f"{policy}.ckpt" if policy in SHIPPED_MODELS else None


def existing_checkpoint(name: str) -> Path:
    """The checkpoint that is called so. Raises ConfigError if there is no such file, nor a shipped policy."""
    found = find_checkpoint(name) or Path(name)
    if not found.exists():
        advice = nearest(name, SHIPPED_MODELS) or f" (shipped are {', '.join(SHIPPED_MODELS)})"
        raise ConfigError(f"{name}: there is no such file, nor a shipped policy of that name{advice}")
    return found


def shipped_policies() -> Iterator[PolicyLine]:
    """A line for each policy that is shipped, from the manifest of its checkpoint; and for what can be learned."""
    from decision.rl.schedulers import records

    from .checkpoint import read_manifest

    shipped = set()
    for name in SHIPPED_MODELS:
        manifest = read_manifest(_MODELS / f"{name}.ckpt")
        record = records()[manifest.config.scheduler]
        shipped.add(record.name)
        hosts = f"; for {manifest.nb_hosts} hosts" if manifest.encoder.get("cores") else ""
        needs = "" if manifest.config.network is None else f"; needs {DISTRIBUTION}[learn]"
        about = record.model_summary.format_map(manifest.config.settings)
        yield PolicyLine(name, f"{about}{hosts}{needs}{_failed(manifest.gates)}", record.paper)
    for record in records().values():
        if record.name not in shipped:
            yield PolicyLine(f"{record.name}.ckpt", f"{record.summary}; made by decision train", record.paper)
    yield PolicyLine("FILE.ckpt", "what decision train has learned")


def _failed(checks: "Sequence[GateCheck]") -> str:
    """Of the first gate that is not passed: which, and on which log; or ""."""
    failed = [(check.workload.name, gate) for check in checks for gate in check.gates if not gate.passed]
    return "".join(
        f"; fails on {log}: {gate.name} {gate.found:.3g} (at most {gate.most:.3g})" for log, gate in failed[:1]
    )


LEARNED = PolicySource(("*.ckpt", *SHIPPED_NAMES), load_policy, shipped_policies, options=checkpoint_options)
