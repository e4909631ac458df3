"""Pictures, drawn with matplotlib: of schedules, comparisons and learning curves, platforms, workloads.

Importing this package does not import matplotlib; its modules do.
"""

import importlib.util

from decision.model.errors import ConfigError, how_to_install


def require_matplotlib() -> None:
    """Check that pictures can be drawn.

    Raises:
        ConfigError: if matplotlib is not installed, with how to install it.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise ConfigError(f"pictures need matplotlib, which is not installed: {how_to_install('analysis')}")
