"""``python -m decision`` is the command ``decision``."""

from .cli import main

main()
