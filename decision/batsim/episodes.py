"""Batsims for episodes: each simulates one, is started before it is needed, and ends when its episode does.

A training ends thousands of them in mid-run, so that one costs little more than its own start: no folder, no guard and
no look for a version of its own. All write into one folder, and are a process group with the shell that guards them:
it waits for the end of a pipe that we hold, and then ends the group and removes the folder. So a Batsim ends with us,
whatever ends us, and no id of a process is ever used twice.
"""

import math
import shlex
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from decision.files import write_platform
from decision.model.errors import ConfigError, DecisionError, PeerError, StuckError, amount
from decision.model.platform import Platform

from .launcher import docker_command, is_stuck, last_words
from .process import find_batsim, speaks_5, wait
from .transport import DisconnectedError, ZmtpTransport

_GUARD = """
trap '' TERM
if ! read -r word; then kill -TERM 0; sleep 2; fi
rm -rf "$1"
kill -KILL 0
"""
DEFAULT_IMAGE = "oarteam/batsim:latest"
_FAREWELL = 5.0  # seconds for a Batsim whose connection is closed to say why
_TERM_GRACE = 10.0  # seconds for a container


class BatsimForEpisodes(msgspec.Struct, frozen=True, kw_only=True):
    """How a Batsim is run for an episode.

    Attributes:
        command: the executable, ``batsim``.
        image: a Docker image in its place; empty for none.
        arguments: more of Batsim's options.
        timeout: seconds to wait for one of its messages; 0 waits without limit.
    """

    command: str = "batsim"
    image: str = ""
    arguments: tuple[str, ...] = ()
    timeout: float = 300.0

    def check(self) -> None:
        """Refuse what cannot be started, or what we say ourselves. Raises ConfigError."""
        if not self.image:
            find_batsim(self.command)
        for word in self.arguments:
            if word.partition("=")[0] in _OURS:
                raise ConfigError(f"{word}: environments say this themselves; leave it out", field="batsim_args")


_OURS = {
    *("-p", "--platform", "-w", "--workload", "-e", "--export", "-s", "--socket-endpoint", "--edc-socket-str"),
    *("-E", "--energy", "--energy-host", "--events", "--external-events", "--edc-library-str"),
}


def engine_of(
    engine: BatsimForEpisodes | str | None,
    batsim: str | None = None,
    arguments: str = "",
    image: str | None = None,
    timeout: float = 300.0,
) -> BatsimForEpisodes | None:
    """The Batsim that these options of `decision.rl.envs.make_setup` name; None for the embedded engine.

    Raises:
        ConfigError: if they name none, or something that the engine has not.
    """
    if isinstance(engine, BatsimForEpisodes):
        return engine
    if engine not in (None, "embedded", "batsim", "docker"):
        raise ConfigError(f"engine: must be embedded, batsim or docker; found {engine!r}", field="engine")
    for name, value, where in (("batsim", batsim, "batsim"), ("image", image, "docker")):
        if value is not None and engine != where:
            raise ConfigError(f"{name}: it is for engine {where!r}; choose that, or leave it out", field=name)
    if engine not in ("batsim", "docker"):
        if arguments:
            raise ConfigError(f"batsim_args: {arguments!r} is for a Batsim; choose its engine", field="batsim_args")
        return None
    chosen = BatsimForEpisodes(
        command=batsim or "batsim",
        image=(image or DEFAULT_IMAGE) if engine == "docker" else "",
        arguments=read_arguments(arguments),
        timeout=amount("timeout", timeout, 0.0, math.inf),
    )
    chosen.check()
    return chosen


def read_arguments(text: str) -> tuple[str, ...]:
    """The words of ``--batsim-args``. Raises ConfigError where a quotation has no end."""
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise ConfigError(f"{text!r}: {error}", field="batsim_args") from None


class EpisodeBatsims:
    """The Batsims of some environments, on one platform.

    Args:
        batsim: how each is run.
        platform: that all read; it is written as a file where it has none.
        switches: options of Batsim 4 without a word, as the environments need them.

    Raises:
        ConfigError: if Batsim, or Docker, is not found.
    """

    def __init__(self, batsim: BatsimForEpisodes, platform: Platform, switches: Sequence[str] = ()) -> None:
        batsim.check()
        self.batsim, self._switches = batsim, tuple(switches)
        self.folder = Path(tempfile.mkdtemp(prefix="decision-"))
        self._lock, self._number, self._open = threading.Lock(), 0, True
        self._running: set[EpisodeBatsim] = set()
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "sh", str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,  # of our session: Batsims join this group, which Ctrl-C does not reach
        )
        try:
            self._platform = Path(platform.path or "").absolute()
            if not self._platform.is_file():
                self._platform = self.folder / "platform.xml"
                # its messages take no time, whatever connects the hosts, so that those of a file must not, either
                write_platform(self._platform, platform if platform.routes else replace(platform, topology=None))
            self.new = not batsim.image and speaks_5(find_batsim(batsim.command))
        except BaseException:
            self.close()
            raise

    def start(self, workload: bytes, events: bytes | None = None) -> "EpisodeBatsim":
        """A Batsim that simulates a workload, in its own JSON, with external events.

        Raises:
            ConfigError: if it cannot be started, or its files cannot be written.
        """
        with self._lock:
            if not self._open:
                raise PeerError("the environments are closed")
            self._number += 1
            prefix, batsim = self.folder / f"{self._number}", self.batsim
            inputs = ["-p", str(self._platform)]
            options = {"-w": workload, "--external-events" if self.new else "--events": events}
            for option, data in options.items():
                if data is None:
                    continue
                path = prefix.with_suffix(".json" if option == "-w" else ".txt")
                try:
                    path.write_bytes(data)
                except OSError as error:
                    reason = f"{path}: cannot be written ({error.strerror})"
                    raise ConfigError(f"{reason}; free space, or let TMPDIR name another folder") from None
                inputs += [option, str(path)]
            if batsim.image:
                words = docker_command(batsim.image, [self._platform], self.folder)
            else:
                words = [find_batsim(batsim.command)]
            words += [*inputs, "-e", f"{prefix}_" if self.new else str(prefix), "-v", "quiet"]
            if self.new:
                words += ["--energy-host"] if "-E" in self._switches else []
            else:
                words += ["--disable-schedule-tracing", "--disable-machine-state-tracing", *self._switches]
            session = EpisodeBatsim(self, prefix, [*words, *batsim.arguments], self._guard.pid)
            self._running.add(session)
            return session

    def forget(self, session: "EpisodeBatsim") -> None:
        """Forget an episode whose Batsim has ended."""
        self._running.discard(session)

    def close(self) -> None:
        """End all, and remove their files."""
        with self._lock:
            self._open = False
        for session in list(self._running):
            session.end()
        with suppress(OSError):
            self._guard.communicate(b"over\n")
        shutil.rmtree(self.folder, ignore_errors=True)


class EpisodeBatsim:
    """One Batsim, and the socket that it connects to.

    Args:
        home: whose it is.
        prefix: of its files.
        words: its command, all but the socket's.
        group: of processes, in which it is.
    """

    def __init__(self, home: EpisodeBatsims, prefix: Path, words: Sequence[str], group: int) -> None:
        self._home, self._prefix, self._log = home, prefix, prefix.with_suffix(".log")
        contained = bool(home.batsim.image)
        advice = f"start it by hand: {shlex.join(words[:1])}"
        socket = "" if contained else str(prefix.with_suffix(".socket"))
        self._transport = ZmtpTransport(socket, timeout=home.batsim.timeout, advice=advice)
        command = [*words, "-s", self._transport.endpoint, *([""] if home.new else [])]
        try:
            with self._log.open("wb") as output:
                self._process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, process_group=group
                )
        except OSError as error:
            self._transport.close(0)
            reason = f"{words[0]}: cannot be started ({error.strerror})"
            raise ConfigError(f"{reason}; give the path of Batsim's executable", field="batsim") from None

    @property
    def over(self) -> bool:
        """Whether its process has ended."""
        return self._process.poll() is not None

    def receive(self) -> bytes:
        """Wait for a message.

        Raises:
            StuckError: if it ends because nothing can happen any more.
            PeerError: if it dies, with its own last words, or sends nothing more.
        """
        try:
            return self._transport.receive(self._check_alive)
        except DisconnectedError:
            wait(self._process, _FAREWELL)
            self._check_alive()
            raise

    def send(self, reply: bytes) -> None:
        """Answer the last question of Batsim."""
        self._transport.send(reply)

    def _check_alive(self) -> None:
        if self._process.poll() is not None:
            why = last_words(self._process.returncode, self._log)
            kind: type[DecisionError] = StuckError if is_stuck(why) else PeerError
            raise kind(f"Batsim ended in an episode {why}")

    def end(self) -> None:
        """End it, wherever it is, and remove its files."""
        process = self._process
        if process.poll() is None:
            if self._home.batsim.image:  # the client hands this on to the container, but not a SIGKILL
                process.terminate()
                wait(process, _TERM_GRACE)
            process.kill()
            process.wait()
        self._transport.close(0)
        self._home.forget(self)
        for path in self._prefix.parent.glob(f"{self._prefix.name}[._]*"):
            with suppress(OSError):
                path.unlink()
