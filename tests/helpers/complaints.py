"""What a command complains about."""


def complaints(stderr: str) -> list[str]:
    """Its lines on stderr, but for those that say how much is compiled, where it is not yet."""
    return [line for line in stderr.splitlines() if not line.startswith("Compiling ")]
