"""What a user writes for a policy, parsed once: its name and its options.

A text is a name followed by options, all separated by commas, and options may also be given apart from it. Whoever is
handed such a text (the command line, `api`, a choice of an experiment) makes one `PolicySpec` of it with `read_spec`;
all others ask the record, so that no two of them read the text differently.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from decision.model.errors import ConfigError, mapping, text

from .options import SHORTHANDS
from .traits import CORRECTION, ESTIMATE

_QUANTILES = f"{ESTIMATE}=quantiles"  # which corrects by itself


class PolicySpec(NamedTuple):
    """A policy's name and options."""

    name: str  # behind a shorthand: easy of easy++
    options: dict[str, Any]  # as texts or values, those given apart first

    @property
    def place(self) -> str:
        """The name without its class: the module or file of one in Python, else the whole name."""
        return self.name.partition(":")[0]

    @property
    def file(self) -> Path | None:
        """The file of a policy that is one: a checkpoint, or Python's (``./mine.py:Class``)."""
        path = Path(self.place)
        return path if path.is_file() else None


def read_spec(spec: str, options: Mapping[str, Any] | None = None) -> PolicySpec:
    """Parse what a user writes for a policy.

    Args:
        spec: name and options, like ``sjf+easy,guard=1.5x``.
        options: more options, as texts or values.

    Raises:
        ConfigError: if an option is not written as name=value, is given twice, or contradicts a shorthand.
    """
    name, *pairs = text("spec", spec).split(",")
    settings = dict(mapping("options", options, '{"guard": "auto"}'))
    if name in SHORTHANDS:
        shorthand, (name, *more) = name, SHORTHANDS[name].split(",")
        named = {pair.partition("=")[0] for pair in pairs} | settings.keys()
        if _QUANTILES in (*pairs, f"{ESTIMATE}={settings.get(ESTIMATE)}") and CORRECTION not in named:
            kept = [pair for pair in more if pair.partition("=")[0] not in (*named, CORRECTION)]
            advice = f"use {','.join((name, *kept, *pairs))}"
            raise ConfigError(f"policy {shorthand}: it has a correction, and {_QUANTILES} takes none; {advice}")
        # what the user says replaces what the shorthand stands for
        pairs += [pair for pair in more if pair.partition("=")[0] not in named]
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise ConfigError(f"policy {spec!r}: {pair!r} is not an option; write it as name=value")
        if key in settings:
            raise ConfigError(f"policy {spec!r}: option {key} is given twice")
        settings[key] = value
    return PolicySpec(name, settings)
