"""``python -m decision`` is the command ``decision``."""

from decision.cli import main

main()
