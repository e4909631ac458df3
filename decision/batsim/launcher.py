"""Starts a Batsim, as a command or in a container, decides for it, and waits for its end."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from decision.model.errors import ConfigError, PeerError, StuckError

from .conversation import Conversation, Recorder, Responder, answer_all
from .process import TERM_GRACE, Ahead, started, wait
from .signals import stop_on_signals
from .transport import DisconnectedError, ZmtpTransport

_FAREWELL = 60.0  # seconds for Batsim to write its files after the end
_TAIL = 64_000  # bytes of Batsim's own messages to look at
_TAIL_LINES = 5
_CRITICAL = re.compile(r"^\[.*?/CRITICAL\] *(.*\S)", re.MULTILINE)  # [host:actor:(1) 0.0] x.cpp:9: [root/CRITICAL] text
_STUCK = (
    "Deadlock detected",
    "nothing can happen any more",
)  # in SimGrid's critical message where nothing can happen any more; and our replacement
_NOT_BEGUN = (125, 126, 127)  # exit codes of docker where it could not start what was to run
_DOCKER_SAYS = re.compile(r"^docker: (.*\S)", re.MULTILINE)


def run_batsim(
    agent: Responder,
    command: Sequence[str],
    *,
    log: Path,
    timeout: float = 0.0,
    contained: bool = False,
    init: Sequence[str] = (),
    ahead: Ahead | None = None,
) -> Conversation:
    """Run Batsim on this machine and decide for it.

    Args:
        agent: what decides.
        command: Batsim and its options, all but the socket's.
        log: the file for what Batsim prints.
        timeout: seconds to wait for one of its messages; 0 waits without limit.
        contained: whether it runs in a container, which cannot see our files: the socket is a free port then.
        init: words that follow the socket's endpoint: of a Batsim 5 the text for the decision process.
        ahead: a Batsim that was started by this command, if one was.

    Raises:
        ConfigError: if Batsim cannot be started.
        PeerError: if Batsim dies (with the end of what it printed), ends with an error, or sends nothing more.
        StuckError: if it ends because nothing can happen any more.
        RemoteProtocolError, PolicyError, Interrupted: as `serve`; Batsim is ended then.
    """
    advice = f"its messages are in {log}"
    with (
        stop_on_signals() as stop,
        tempfile.TemporaryDirectory(prefix="decision-") as folder,
        ZmtpTransport(
            # a free port, for which the path is empty, is what alone a container can reach
            ahead.socket if ahead is not None else "" if contained else f"{folder}/batsim",
            timeout=timeout,
            advice=advice,
            stop=stop,
        ) as transport,
        _running([*command, "-s", transport.endpoint, *init], log, ahead) as batsim,
        Recorder(None) as recorder,
    ):
        try:
            conversation = answer_all(agent, transport, recorder, watch=lambda: _check_alive(batsim, log, contained))
        except DisconnectedError:  # it is about to die, and the end of its log says more
            wait(batsim, TERM_GRACE)
            _check_alive(batsim, log, contained)
            raise
        wait(batsim, _FAREWELL)
        if batsim.returncode is None:
            raise PeerError(f"Batsim did not end within {_FAREWELL:g} s after the simulation; see {log}")
        if batsim.returncode != 0:
            raise PeerError(f"Batsim failed after the simulation ({_how(batsim.returncode)}){_end_of_log(log)}")
        return conversation


@contextmanager
def _running(command: Sequence[str], log: Path, ahead: Ahead | None) -> Iterator["subprocess.Popen[bytes]"]:
    """Batsim, started now unless it was ahead."""
    if ahead is None:
        with started(command, log) as batsim:
            yield batsim
        return
    try:
        ahead.log.replace(log)
    except OSError as error:
        raise ConfigError(f"{log}: cannot be written ({error.strerror}); choose another folder") from None
    yield ahead.process


def _check_alive(batsim: "subprocess.Popen[bytes]", log: Path, contained: bool) -> None:
    if batsim.poll() is None:
        return
    if contained and batsim.returncode in _NOT_BEGUN:
        message = _DOCKER_SAYS.search(log.read_text(errors="replace"))
        why = message[1] if message else f"exit code {batsim.returncode}; see {log}"
        raise PeerError(f"Docker could not start Batsim: {why}")
    end = _end_of_log(log)
    error = StuckError if is_stuck(end) else PeerError
    raise error(f"Batsim ended during the run ({_how(batsim.returncode)}){end}")


def _how(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {-code}"


def is_stuck(words: str) -> bool:
    """Whether Batsim's last words say that nothing could happen any more."""
    return any(each in words for each in _STUCK)


def last_words(code: int, log: Path) -> str:
    """How Batsim ended and why, in one line, for where its log does not stay."""
    critical, lines = _end_of_output(log)
    why = critical or (lines[-1].strip() if lines else "it said nothing")
    return f"({_how(code)}): {why}"


def _end_of_log(log: Path) -> str:
    """Why Batsim ended: its first critical message, or else the end of what it printed."""
    critical, lines = _end_of_output(log)
    if critical:
        return f": {critical}; its messages are in {log}"
    return f"; the end of {log}:\n" + "\n".join(lines) if lines else f"; {log} says no more"


def _end_of_output(log: Path) -> tuple[str, list[str]]:
    """Batsim's first critical message, empty where there is none, and the last lines that it printed."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _TAIL))
        text = file.read().decode(errors="replace").strip()
    critical = _CRITICAL.search(text)
    lines = [line for line in text.splitlines() if "/INFO]" not in line][-_TAIL_LINES:]
    return critical[1] if critical else "", lines


def docker_command(image: str, reads: Iterable[Path], folder: Path) -> list[str]:
    """The command that runs `image` in Batsim's place; Batsim's options follow it.

    The container has the machine's network (Batsim connects to a port that we listen on) and sees the files and
    the folder under their own absolute paths. What it writes belongs to the user who runs this.

    Args:
        image: a published image whose entry point is Batsim.
        reads: the files that Batsim reads.
        folder: where it writes.

    Raises:
        ConfigError: if Docker is not installed.
    """
    docker = shutil.which("docker")
    if docker is None:
        raise ConfigError("docker: command not found; install Docker, or choose the engine batsim", field="engine")
    command = [docker, "run", "--rm", "--init", "--network=host", f"--user={os.getuid()}:{os.getgid()}"]
    for path in dict.fromkeys(path.absolute() for path in reads):  # Docker takes a path once
        command.append(f"--volume={path}:{path}:ro")
    return [*command, f"--volume={folder.absolute()}:{folder.absolute()}", image]
