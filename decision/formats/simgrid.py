"""Versions of SimGrid, as far as its platform files differ between them."""

import re

from decision.model.errors import ConfigError

BATSIM_SIMGRID = "3.32"  # what Batsim 4.2.1 is built with

FIRST_WITH_NEW_NAMES = (3, 24)  # wattage_per_state, wattage_off: idle, epsilon, all cores
FIRST_WITHOUT_OLD_NAMES = (3, 28)  # watt_per_state, watt_off: idle, one core, all cores
_FIRST_OF_FORMAT = (3, 22)  # format 4.1 under the DOCTYPE below

DOCTYPE = "https://simgrid.org/simgrid.dtd"
OLD_DOCTYPE = "http://simgrid.gforge.inria.fr/simgrid/simgrid.dtd"  # of old, and still accepted
FORMAT = "4.1"


def simgrid_version(text: str) -> tuple[int, int]:
    """Major and minor version from ``3.28``, ``3.23.2`` or ``4``.

    Raises:
        ConfigError: if it is no version, or one from before platform files had their present format.
    """
    match = re.fullmatch(r"(\d{1,3})(?:\.(\d{1,3}))?(?:\.\d+)*", text.strip())
    version = (int(match[1]), int(match[2] or 0)) if match else (0, 0)
    if version < _FIRST_OF_FORMAT:
        raise ConfigError(f"--simgrid {text!r}: give a version from 3.22 on, such as 3.24, 3.28 or 4.0")
    return version
