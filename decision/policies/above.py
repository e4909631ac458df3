"""What policies need of packages above this one, imported only when a user asks for it.

The only place that names such modules, as texts: `.importlinter` cannot see these imports, and lists them.
"""

import importlib
from collections.abc import Iterator
from typing import Any

_SOURCES = ("decision.learn:LEARNED", "decision.batsim.pybatsim:SCHEDULERS", "decision.slurm.policy:SLURM")
_READERS = {"network": "decision.learn:read_repair", "prices": "decision.learn:read_prices"}


def shipped_sources() -> Iterator[Any]:
    """The sources of policies (`decision.policies.source.PolicySource`) that come with this package."""
    return map(_find, _SOURCES)


def read_learned(what: str, name: str) -> Any:
    """What a checkpoint has, as `decision.learn` reads it.

    Args:
        what: ``network``: a `decision.placement.repair.StartRule` and the levels of the trees that it is for;
            ``prices``: weights (L - 1, N_FEATURES) of trees of L levels.
        name: of the checkpoint.

    Raises:
        ConfigError: if it has nothing of the kind.
        InputError: if it cannot be read.
    """
    return _find(_READERS[what])(name)


def _find(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)
