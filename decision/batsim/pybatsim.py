"""Runs a scheduler class written for pybatsim 3.2.1, unmodified, in the place of our own policies.

Design
------
pybatsim's loop is receive, handle, send. Its `Batsim.do_next_event` is one turn of that loop and its constructor
is the first, so the loop turns inside out without a thread: a mailbox stands in for pybatsim's network, holds the
question of the turn and takes the reply. A worker thread that blocks in a fake socket was rejected: it needs a
hand-over, a shutdown, and a way for errors to cross.

The scheduler gets what pybatsim gives it, quirks included: a job without a walltime has a `requested_time` of -1,
a pstate arrives as text, and what is decided in `onAfterBatsimInit` is lost, since the first reply left before.
What it prints goes to the log, for standard output belongs to the command that runs it. Schedulers of pybatsim's
second interface (`batsim.sched`) want jobs named by integers and none that starts at time 0, log to standard error
and write ``<export-prefix>_events.csv``, by default in the working directory.

pybatsim is never a requirement: it is imported when a scheduler is loaded.
"""

import contextlib
import io
import json
import logging
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from decision.model.errors import LocalProtocolError, PolicyError
from decision.model.hosts import parse_hosts
from decision.policies.catalogue import PolicyLine
from decision.policies.source import PolicySource
from decision.protocol import CodecError, Connection, JsonCodec, Message, Role
from decision.protocol.messages import ExecuteJob, Hello, Init, JobCompleted, SimulationBegins

from .interpreter import Interpreter
from .pybatsim_loading import PYBATSIM_PREFIX, error_origin, json_options, load_scheduler, open_batsim

logger = logging.getLogger(__name__)


class PybatsimAgent:
    """One of Batsim's messages in, one reply out, decided by a pybatsim scheduler.

    Args:
        spec: ``pybatsim:module:Class`` or ``pybatsim:./file.py:Class``; the class may also be a function of
            pybatsim's second interface, as for pybatsim's own launcher.
        options: what the scheduler's constructor gets; text that is JSON arrives as its value, so that
            ``backfilling_reservation_depth=2`` is a number.

    Raises:
        ConfigError: pybatsim is not installed, the spec names no scheduler, or the scheduler refuses the options.
    """

    def __init__(self, spec: str, options: Mapping[str, Any] | None = None) -> None:
        self.spec = spec
        self._connection = Connection(Role.DECISION)
        self._codec = JsonCodec()
        self._holdings = _Holdings()
        self._interpreter = Interpreter(spec)
        self._mailbox = _Mailbox()
        self._batsim: Any = None  # pybatsim's Batsim, made by the first message
        with prints_to_log():
            self._scheduler = load_scheduler(spec, json_options(options or {}))

    @property
    def finished(self) -> bool:
        """Whether the simulation has ended."""
        return self._connection.ended

    @property
    def now(self) -> float:
        """Simulated time of the last message, seconds."""
        return float(self._mailbox.question.get("now", 0.0))

    @property
    def state(self) -> None:
        """None: pybatsim's schedulers keep their own state."""

    @property
    def window_gap(self) -> float:
        """nan: nothing is known of its windows."""
        return math.nan

    def predictions(self, ids: Iterable[str]) -> None:
        """None: nothing is known of what it expects."""

    def get_ready(self) -> None:
        """Nothing: the scheduler is loaded, and it gets ready with the first message."""

    def handle(self, question: bytes) -> bytes:
        """Let the scheduler answer one of Batsim's messages.

        Raises:
            RemoteProtocolError: the question breaks the protocol.
            PolicyError: the scheduler raised, exited, or decided what the protocol or the hosts do not allow; the
                message names scheduler and time, and the scheduler's own error is its cause.
        """
        message = self._connection.receive(question)
        if self._connection.version.begins_with_init:
            if isinstance(next(iter(message.events), None), Init):
                return self._connection.send(Message(message.now, (Hello(message.now, self._interpreter.greet()),)))
            message = self._interpreter.question(message)
            question = self._codec.encode(message)
        self._holdings.note_ends(message)
        self._mailbox.question = json.loads(question)
        try:
            with prints_to_log():
                self._take_turn()
            reply = self._codec.decode(self._mailbox.reply)
            self._holdings.take(reply)
            if self._connection.version.begins_with_init:
                reply = self._interpreter.reply(reply)
            return self._connection.send(reply)
        except CodecError as error:
            raise self._blame(f"sent a command that Batsim does not know: {error}") from error
        except (LocalProtocolError, PolicyError) as error:
            raise self._blame(f"decided something impossible: {error}") from error
        except (Exception, SystemExit) as error:
            raise self._blame(f"failed: {error_origin(error)}") from error

    def _take_turn(self) -> None:
        if self._batsim is None:
            self._batsim = open_batsim(self._scheduler, self._mailbox)
        else:
            self._batsim.do_next_event()

    def _blame(self, what: str) -> PolicyError:
        return PolicyError(f"t={self._mailbox.question['now']} s: {self.spec} {what}")


class _Mailbox:
    """Stands in for pybatsim's `NetworkHandler`: gives the question of this turn and takes its reply."""

    def __init__(self) -> None:
        self.question: dict[str, Any] = {}
        self.reply = b""

    def bind(self) -> None: ...

    def close(self) -> None: ...

    def recv(self, blocking: bool = False) -> dict[str, Any]:
        return self.question

    def send(self, message: dict[str, Any]) -> None:
        self.reply = json.dumps(message, allow_nan=False).encode()


class _Holdings:
    """Which job uses which compute host: a start on a busy host never reaches Batsim, which would stop."""

    def __init__(self) -> None:
        self._nb_compute = 0  # hosts with these ids and above store, and may be shared
        self._shared = False
        self._holder: dict[int, str] = {}  # job on each host that is taken
        self._hosts: dict[str, list[int]] = {}  # hosts of each job that runs

    def note_ends(self, question: Message) -> None:
        """Release the hosts of the jobs that a question says have ended."""
        for event in question.events:
            if isinstance(event, SimulationBegins):
                self._nb_compute = event.data.nb_compute_resources
                self._shared = event.data.allow_compute_sharing
            elif isinstance(event, JobCompleted):
                for host in self._hosts.pop(event.data.job_id, ()):
                    del self._holder[host]

    def take(self, reply: Message) -> None:
        """Enter the starts of a reply.

        Raises:
            PolicyError: a host is taken.
        """
        for event in reply.events:
            if isinstance(event, ExecuteJob) and not self._shared:
                self._take(event.data.job_id, parse_hosts(event.data.alloc))

    def _take(self, job: str, hosts: list[int]) -> None:
        hosts = [host for host in hosts if host < self._nb_compute]
        for host in hosts:
            if host in self._holder:
                raise PolicyError(f"{job} is to start on host {host}, where {self._holder[host]} runs")
        self._hosts[job] = hosts
        self._holder.update(dict.fromkeys(hosts, job))


@contextlib.contextmanager
def prints_to_log() -> Iterator[None]:
    """What is printed to standard output meanwhile goes to the log afterwards."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            yield
    finally:
        for line in printed.getvalue().splitlines():
            logger.debug("%s", line)


SCHEDULERS = PolicySource(
    names=(f"{PYBATSIM_PREFIX}*",),
    load=PybatsimAgent,
    lines=lambda: [PolicyLine(f"{PYBATSIM_PREFIX}module:Class", "a scheduler written for pybatsim 3.2.1, unmodified")],
    answers_messages=True,
)
