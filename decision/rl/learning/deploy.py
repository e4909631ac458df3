"""Learned policies where policies run: from a checkpoint to choices."""

from pathlib import Path

import torch

from decision.model.errors import ConfigError
from decision.model.platform import Platform
from decision.policies.placement.search import SEEN, StartRule
from decision.policies.policy import Policy
from decision.policies.traits import OutlookSettings, SupplySettings
from decision.rl.schedulers import ChoosingPolicy, ChoosingScheduler, Encoder, find_scheduler, read_encoder
from decision.rl.schedulers.repair import RepairEncoder

from .acting import NetworkActor
from .checkpoint import MANIFEST, REMEDY, Manifest, parametric_policy, read_checkpoint, shown
from .config import check_network
from .networks import Mlp, Network, as_repair, make_network
from .weights import load_network


class LearnedPolicy(ChoosingPolicy):
    """A checkpoint's choices; the run's seed is that of its draws.

    Args:
        encoder: what the network reads.
        actor: the network.
        name: for messages.
        expects: how long jobs were expected to run in training, and are here unless a user says otherwise; None for
            walltimes.
        supply: what happened beyond a supply of power in training, likewise; None where there was none.
    """

    def __init__(
        self,
        encoder: Encoder,
        actor: NetworkActor,
        name: str,
        expects: OutlookSettings | None = None,
        supply: SupplySettings | None = None,
    ) -> None:
        super().__init__(encoder, actor, name)
        self.actor, self.expects, self.supply = actor, expects, supply

    def reset(self, platform: Platform, seed: int) -> None:
        """A run begins. Raises ConfigError if the platform is of another size than the encoder."""
        super().reset(platform, seed)
        self.actor.reset(seed)


def learned_policy(path: Path) -> Policy:
    """The policy of a checkpoint; torch computes in one thread from now on.

    Raises:
        InputError: if the file is not a checkpoint, or damaged.
        ConfigError: if its encoder is of another version than ours, or does not fit the rest of the manifest.
    """
    return policy_of(path, *read_checkpoint(path))


def policy_of(path: Path, manifest: Manifest, weights: bytes) -> Policy:
    """As `learned_policy`, of a checkpoint that has been read."""
    scheduler = find_scheduler(manifest.config.scheduler)
    if isinstance(scheduler, ChoosingScheduler):
        return _with_network(path, manifest, scheduler, weights)
    return parametric_policy(path, manifest, scheduler, weights)


def repair_of(path: Path) -> tuple[StartRule, RepairEncoder]:
    """The network of a checkpoint for the search over windows, and what it sees.

    Raises:
        InputError: if the file is not a checkpoint, or damaged.
        ConfigError: if it is of another scheduler, or for another number of entries.
    """
    manifest, weights = read_checkpoint(path)
    scheduler = find_scheduler(manifest.config.scheduler)
    if scheduler.name != "repair":
        raise ConfigError(f"{path}: it is a checkpoint of {scheduler.name}; repair needs one of decision train repair")
    assert isinstance(scheduler, ChoosingScheduler)
    encoder = _encoder(path, manifest, scheduler)
    assert isinstance(encoder, RepairEncoder)
    if encoder.q != SEEN:
        raise ConfigError(f"{path}: its network sees the first {encoder.q} hosts (q), and solver=nsa shows {SEEN}")
    network = _network(path, manifest, scheduler, encoder, weights)
    assert isinstance(network, Mlp)
    return as_repair(network.policy), encoder


def _with_network(path: Path, manifest: Manifest, scheduler: ChoosingScheduler, weights: bytes) -> LearnedPolicy:
    torch.set_num_threads(1)  # there is too little work to share, and threads that wait keep cores busy
    encoder = _encoder(path, manifest, scheduler)
    network = _network(path, manifest, scheduler, encoder, weights)
    expects = scheduler.outlook(manifest.config.env, encoder)
    supply = scheduler.supply(manifest.config.env)
    actor = NetworkActor(network, scheduler.draws_of(manifest.config.env))
    return LearnedPolicy(encoder, actor, path.name, expects, supply)


def _network(path: Path, manifest: Manifest, scheduler: ChoosingScheduler, encoder: Encoder, weights: bytes) -> Network:
    config = manifest.config.network
    assert config is not None
    with torch.device("meta"):  # which allocates nothing
        network = make_network(config, encoder.shape[0], encoder.actions, scheduler.layout(encoder))
    load_network(str(path), network, weights)
    return network


def _encoder(path: Path, manifest: Manifest, scheduler: ChoosingScheduler) -> Encoder:
    """The encoder, which must be the one that the manifest's config makes."""
    try:
        encoder = read_encoder(manifest.encoder)
    except ConfigError as error:
        raise ConfigError(f"{path}: {MANIFEST}: encoder: {shown(error)}; copy the file again, or train again") from None
    config, where = manifest.config, f"{path}: {MANIFEST}"
    check_network(config, where)
    for field, value in scheduler.encoder_fields(config.env, manifest.nb_hosts).items():
        found = getattr(encoder, field, None)
        if found != value:
            rest = f"must be {value}, as config and nb_hosts say, found {found}"
            raise ConfigError(f"{where}: encoder.{field}: {rest}; {REMEDY}")
    return encoder
