"""Starts a Batsim, schedules for it, and sees it to its end."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import zmq

from decision.model.errors import ConfigError, PeerError

from .recorder import Recorder
from .signals import stop_on_signals
from .wire import DisconnectedError, Wire
from .zmq_loop import Conversation, Decider, answer_all

_FREE_PORT = "tcp://127.0.0.1:*"
_FAREWELL = 60.0  # seconds for Batsim to write its files after the end
_PATIENCE = 5.0  # seconds between asking it to end and making it
_TAIL = 2000  # bytes of Batsim's own messages to look at
_TAIL_LINES = 5


def run_batsim(agent: Decider, command: Sequence[str], *, log: Path, timeout: float = 0.0) -> Conversation:
    """Run Batsim on a free port of this machine and decide for it.

    Args:
        agent: what decides.
        command: Batsim and its options, all but the socket's.
        log: the file for what Batsim prints.
        timeout: seconds to wait for one of its messages; 0 waits for ever.

    Raises:
        ConfigError: if Batsim cannot be started.
        PeerError: if Batsim dies (with the end of what it printed), ends with an error, or stops talking.
        RemoteProtocolError, PolicyError, Interrupted: as `serve`; Batsim is ended then.
    """
    advice = f"its messages are in {log}"
    with (
        stop_on_signals() as stop,
        Wire(zmq.REP, _FREE_PORT, peer="Batsim", timeout=timeout, advice=advice, stop=stop) as wire,
        _started([*command, "-s", wire.endpoint], log) as batsim,
        Recorder(None) as recorder,
    ):
        try:
            conversation = answer_all(agent, wire, recorder, watch=lambda: _check_alive(batsim, log))
        except DisconnectedError:  # it is about to die, and its last words say more
            _wait(batsim, _PATIENCE)
            _check_alive(batsim, log)
            raise
        _see_off(batsim, log)
        return conversation


@contextmanager
def _started(command: Sequence[str], log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Batsim running; however the block is left, it does not outlive it."""
    with _open_log(log) as output:
        batsim = _start(command, output)
        try:
            yield batsim
        finally:
            _end(batsim)


def _open_log(path: Path) -> BinaryIO:
    try:
        return path.open("wb")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written ({error.strerror}); choose another folder") from None


def _start(command: Sequence[str], output: BinaryIO) -> "subprocess.Popen[bytes]":
    try:
        # a session of its own: Ctrl-C is for us, and we end Batsim
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    except OSError as error:
        raise ConfigError(
            f"{command[0]}: cannot be started ({error.strerror}); give --batsim the path of Batsim's executable"
        ) from None


def _end(batsim: "subprocess.Popen[bytes]") -> None:
    if batsim.poll() is None:
        batsim.terminate()
        _wait(batsim, _PATIENCE)
        batsim.kill()
        batsim.wait()


def _wait(batsim: "subprocess.Popen[bytes]", seconds: float) -> None:
    with suppress(subprocess.TimeoutExpired):
        batsim.wait(seconds)


def _check_alive(batsim: "subprocess.Popen[bytes]", log: Path) -> None:
    if batsim.poll() is not None:
        raise PeerError(f"Batsim ended in mid-run ({_how(batsim.returncode)}){_last_words(log)}")


def _see_off(batsim: "subprocess.Popen[bytes]", log: Path) -> None:
    _wait(batsim, _FAREWELL)
    if batsim.returncode is None:
        raise PeerError(f"Batsim did not end within {_FAREWELL:g} s after the simulation; see {log}")
    if batsim.returncode != 0:
        raise PeerError(f"Batsim failed after the simulation ({_how(batsim.returncode)}){_last_words(log)}")


def _how(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {-code}"


def _last_words(log: Path) -> str:
    """The end of what Batsim printed."""
    lines = log.read_bytes()[-_TAIL:].decode(errors="replace").strip().splitlines()[-_TAIL_LINES:]
    return f"; its last words, in {log}:\n" + "\n".join(lines) if lines else f" without a word in {log}"
