"""How many random cases a test tries: all of them with ``--nightly``, a part of them by day."""

night = False  # what the command line said, before test modules are imported


def by_day(few: int, *, of: int) -> int:
    """How many are tried: so few by day."""
    return of if night else few
