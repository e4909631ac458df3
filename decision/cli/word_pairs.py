"""Options that have two words, as Batsim 5 has them: on the command line and in a file of options."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import typer

from decision.model.errors import ConfigError

from .command import Command, read_config

MARK = "\0"  # between the two words of an option; no argument contains it

# Options with two words, and what those are
PAIRS = {
    "--edc-socket-str": ("-s", "ENDPOINT INIT"),
    "--edc-socket-file": ("-S", "ENDPOINT FILE"),
    "--edc-library-str": ("-l", "LIBRARY INIT"),
    "--edc-library-file": ("-L", "LIBRARY FILE"),
    "--add-role": ("-r", "HOST ROLE"),
}


class PairCommand(Command):
    """A command whose options may have two words."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, the two words of an option as one."""
        return super().parse_args(ctx, list(_joined(args)))


def _joined(args: Sequence[str]) -> Iterator[str]:
    shorts = {short: name for name, (short, _) in PAIRS.items()}
    words = iter(args)
    for word in words:
        name = shorts.get(word, word)
        if name in PAIRS:
            first, second = next(words, None), next(words, None)
            if first is None or second is None or second.startswith("--") or second in shorts:
                raise ConfigError(f"{word}: needs two words, {PAIRS[name][1]}; an empty text is ''")
            yield f"{name}={first}{MARK}{second}"
        else:
            yield word


def read_pair_config(context: Any, parameter: Any, path: Path | None) -> Path | None:
    """Take options from a file, in which the two words of an option are a list."""
    read_config(context, parameter, path)
    for name in PAIRS:
        key = name.removeprefix("--").replace("-", "_")
        words = (context.default_map or {}).get(key)
        if isinstance(words, list):
            if len(words) % 2:
                raise ConfigError(f"{path}, {name[2:]}: two words are needed, {PAIRS[name][1]}")
            pairs = zip(words[::2], words[1::2], strict=True)
            context.default_map[key] = [f"{one}{MARK}{other}" for one, other in pairs]
    return path


def pair_option(name: str, help_: str) -> Any:
    """An option of `PAIRS`."""
    short, words = PAIRS[name]
    return typer.Option(short, name, help=help_, metavar=words)


def split_pair(pair: str) -> tuple[str, str]:
    """The two words of an option's value."""
    first, _, second = pair.partition(MARK)
    return first, second
