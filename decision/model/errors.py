"""Errors that name whose fault they are.

Each error is one clear line for a person: what, where, what to do. `exit_code` is what the command line
ends with: 2 for a user's mistake, 3 for a peer's fault.
"""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

DISTRIBUTION = "batsim-decision"  # the package's name in an index of packages; there, `decision` is somebody else's


def how_to_install(extra: str) -> str:
    """The command that installs what one of the package's extras needs: learn, analysis.

    It names the packages themselves: this one need not be on an index. A checkout that is not installed names itself.
    """
    from importlib.metadata import PackageNotFoundError, requires  # 20 ms of a start

    try:
        lines = [line.split(";") for line in requires(DISTRIBUTION) or ()]
    except PackageNotFoundError:
        return shlex.join(["pip", "install", f"{Path(__file__).parents[2]}[{extra}]"])
    return shlex.join(["pip", "install", *(line[0].strip() for line in lines if f'"{extra}"' in line[-1])])


class DecisionError(Exception):
    """Root of all errors that this package raises on purpose.

    Args:
        message: one line: what is wrong, what was found, what to do, in words that hold for every interface.
        field: the Python name of the argument to change (``speed``), if one can repair it. The command line adds
            which of its options that is (``--speed``); nothing below it names an option.

    Examples:
        >>> import decision as d
        >>> try:
        ...     d.simulate("toy", "toy", "easy", seed=-1)
        ... except d.DecisionError as error:
        ...     print(error)
        seed: must be a whole number, at least 0; found -1
    """

    exit_code = 2

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class ConfigError(DecisionError):
    """The user's mistake: a wrong option, an unreadable file, a workload that does not fit its platform.

    Examples:
        >>> import decision as d
        >>> try:
        ...     d.simulate("toy", "toy", "easyy")
        ... except d.ConfigError as error:
        ...     print(str(error).partition(" (")[0])
        there is no policy 'easyy'; did you mean easy?
    """


class InputError(ConfigError):
    """A file that cannot be used. The message names the file, the place in it and what to do."""


class PolicyError(DecisionError):
    """A policy decided something impossible: the message names the time, the job and the hosts.

    Examples:
        >>> import decision as d
        >>> class Greedy:
        ...     def reset(self, platform, seed): pass
        ...     def decide(self, cluster, plan):
        ...         for job in cluster.queue:
        ...             plan.start(job, [0])
        >>> try:
        ...     d.simulate("toy", "toy", Greedy())
        ... except d.PolicyError as error:
        ...     print(error)
        t=0 s: w0!1 needs 3 hosts, 1 given (0)
    """


class DeadlockError(PolicyError):
    """The simulation cannot go on: jobs wait, nothing runs, and the policy asked for nothing."""


class DecideTimeoutError(PolicyError):
    """A policy took longer for a decision than it may: the message names the line at which it was."""


class ProtocolError(DecisionError):
    """Something is wrong with the conversation."""


class LocalProtocolError(ProtocolError):
    """Our own side tried to send what the protocol forbids now."""


class RemoteProtocolError(ProtocolError):
    """The peer sent what the protocol forbids: nonsense, a message out of turn, time going backwards."""

    exit_code = 3


class PeerError(DecisionError):
    """The peer never connected, sent nothing more or died."""

    exit_code = 3


class StuckError(PeerError):
    """Batsim says that its simulation cannot go on."""


class Failure(NamedTuple):
    """A run without a result."""

    run: str
    reason: str
    host: str


class RunsFailedError(PolicyError):
    """Some runs have no result, mostly for what a policy has decided; those of all others are stored.

    Args:
        message: as of `DecisionError`.
        failures: the runs.
    """

    exit_code = 1

    def __init__(self, message: str, failures: Sequence[Failure]) -> None:
        super().__init__(message)
        self.failures = failures


class ShareDone(Exception):  # noqa: N818 - no error
    """The share of the runs that this process had to do is done; what there is to say of it."""


class InternalError(Exception):
    """Our own mistake, found before it could do harm: an array of a kernel is full.

    Not a `DecisionError`: the command line says that it is a bug and asks for a report.
    """
