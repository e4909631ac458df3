"""1,000,000 jobs of 10,000 users on 1,024 hosts under a policy; prints peak megabytes."""

import sys

from .inputs import made
from .measures import engine_rate, peak_megabytes

HOSTS = 1_024


def main() -> None:
    """Run, and print the figure."""
    engine_rate(made(1_000_000, HOSTS, load=0.8, seed=6, users=10_000), HOSTS, sys.argv[1])
    print(f"{peak_megabytes():.1f}")


if __name__ == "__main__":
    main()
