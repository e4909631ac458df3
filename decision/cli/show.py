"""``decision show``: what a checkpoint says about itself."""

from pathlib import Path
from typing import Annotated

import typer

Checkpoint = Annotated[Path, typer.Argument(help="A checkpoint that decision train made.", metavar="CKPT")]


def show(checkpoint: Checkpoint) -> None:
    """Show what a checkpoint was learned from, how, and how far.

    Example:

      decision show learned/dbf.ckpt
    """
    from decision.learn.checkpoint import read_manifest

    from .learning_tables import print_manifest

    print_manifest(read_manifest(checkpoint))
