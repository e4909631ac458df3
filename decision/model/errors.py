"""Errors that name who is to blame.

Each error is one clear line for a person: what, where, what to do. `exit_code` is what the command line
ends with: 2 for a user's mistake, 3 for a peer's fault.
"""


class DecisionError(Exception):
    """Root of all errors that this package raises on purpose."""

    exit_code = 2


class ConfigError(DecisionError):
    """The user's mistake: a wrong option, an unreadable file, a workload that does not fit its platform."""


class InputError(ConfigError):
    """A file that cannot be used. The message names the file, the place in it and what to do."""


class PolicyError(DecisionError):
    """A policy decided something impossible: the message names the time, the job and the hosts."""


class DeadlockError(PolicyError):
    """The simulation cannot go on: jobs wait, nothing runs, and the policy asked for nothing."""


class ProtocolError(DecisionError):
    """Something is wrong with the conversation."""


class LocalProtocolError(ProtocolError):
    """Our own side tried to send what the protocol forbids now."""


class RemoteProtocolError(ProtocolError):
    """The peer sent what the protocol forbids: nonsense, a message out of turn, time going backwards."""

    exit_code = 3


class PeerError(DecisionError):
    """The peer never came, stopped talking or died."""

    exit_code = 3
