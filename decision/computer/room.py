"""Memory asked for before it is taken."""

from decision.computer.cores import available_memory
from decision.model.errors import ConfigError


def check_memory(what: str, count: int, size: float) -> None:
    """Refuse so many things of `size` bytes each where they do not fit into memory.

    Args:
        what: their name, in the plural.
        count: how many.
        size: bytes that one takes at least.

    Raises:
        ConfigError: saying how many would fit.
    """
    room = available_memory()
    if count * size > room:
        need = f"{count:,} {what} need {count * size / 2**30:,.1f} GiB of memory, and {room / 2**30:,.1f} GiB are free"
        raise ConfigError(f"{need}: at most {int(room / size):,} fit")
