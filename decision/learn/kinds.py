"""Which trainings differ in their seed alone."""

from pathlib import Path

import msgspec

from decision.model.errors import InputError

from .checkpoint import read_manifest


def kind_of(folder: Path) -> bytes | None:
    """The same for all trainings of one configuration on the same files, whatever their seed and how far they got.

    Args:
        folder: what ``decision train`` wrote.

    Returns:
        None where no checkpoint says what was learned.
    """
    try:
        (checkpoint,) = folder.glob("*.ckpt")
        manifest = read_manifest(checkpoint)
    except (ValueError, InputError):  # none, several, or one that cannot be read
        return None
    config = msgspec.structs.replace(manifest.config, seed=0)
    return msgspec.json.encode(msgspec.structs.replace(manifest, config=config, steps=0, scores={}, gates=()))
