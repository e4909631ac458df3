"""1,000,000 jobs on 10,000 hosts under EASY; prints seconds, peak megabytes and time per job against 100,000 jobs."""

import resource

from .inputs import made
from .measures import engine_rate

HOSTS = 10_000


def main() -> None:
    """Run, and print three figures."""
    small = made(100_000, HOSTS, load=0.95, seed=3)
    engine_rate(small, HOSTS, "easy")
    small_rate = engine_rate(small, HOSTS, "easy")
    large_rate = engine_rate(made(1_000_000, HOSTS, load=0.95, seed=4), HOSTS, "easy")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{1_000_000 / large_rate:.3f} {peak:.0f} {small_rate / large_rate:.3f}")


if __name__ == "__main__":
    main()
