"""What pictures need, which not every installation has."""

import importlib.util

from decision.model.errors import ConfigError


def require_matplotlib() -> None:
    """See that pictures can be drawn.

    Raises:
        ConfigError: if not, with how to change that.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise ConfigError("pictures need matplotlib, which is not installed: pip install 'decision[analysis]'")
