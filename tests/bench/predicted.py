"""1,000,000 jobs of 10,000 users on 1,024 hosts under a policy, for its memory."""

import sys

from .inputs import made
from .measures import engine_rate

HOSTS = 1_024


def main() -> None:
    """Run."""
    engine_rate(made(1_000_000, HOSTS, load=0.8, seed=6, users=10_000), HOSTS, sys.argv[1])


if __name__ == "__main__":
    main()
