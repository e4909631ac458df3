"""Batsim in a container: its command, as Docker runs it."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from decision.model.errors import ConfigError


def docker_command(image: str, reads: Iterable[Path], folder: Path) -> list[str]:
    """The command that runs `image` in Batsim's place; Batsim's options follow it.

    The container has the machine's network (Batsim connects to a port that we listen on) and sees the files and
    the folder under their own absolute paths. What it writes belongs to whoever runs this.

    Args:
        image: a published image whose entry point is Batsim.
        reads: the files that Batsim reads.
        folder: where it writes.

    Raises:
        ConfigError: if there is no Docker.
    """
    docker = shutil.which("docker")
    if docker is None:
        raise ConfigError("--engine docker: there is no command 'docker'; install Docker, or use --engine batsim")
    command = [docker, "run", "--rm", "--init", "--network=host", f"--user={os.getuid()}:{os.getgid()}"]
    for path in dict.fromkeys(path.absolute() for path in reads):  # Docker takes a path once
        command.append(f"--volume={path}:{path}:ro")
    return [*command, f"--volume={folder.absolute()}:{folder.absolute()}", image]
