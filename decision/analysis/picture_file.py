"""Pictures as files."""

import io
from pathlib import Path

from matplotlib.figure import Figure

from decision.formats.files import write_files
from decision.model.errors import ConfigError

FORMATS = (".png", ".svg", ".pdf")


def save(figure: Figure, path: Path) -> None:
    """Write a picture in the format that the path's ending names, whole or not at all.

    Raises:
        ConfigError: if the file cannot be written or has an ending that is not in `FORMATS`.
    """
    ending = path.suffix.lower()
    if ending not in FORMATS:
        raise ConfigError(f"{path}: pictures are {', '.join(FORMATS)}; choose one of these endings")
    write_files({path: [drawn(figure, ending)]})


def drawn(figure: Figure, ending: str) -> bytes:
    """A picture in one of the `FORMATS`."""
    content = io.BytesIO()
    figure.savefig(content, format=ending[1:])
    return content.getvalue()
