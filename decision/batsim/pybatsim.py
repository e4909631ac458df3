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

`PybatsimAgent` answers messages, and is exact. `PybatsimPolicy` gives the scheduler a Batsim of its own, made of what a
policy sees, for one thing only: our guard around it.

pybatsim is never a requirement: it is imported when a scheduler is loaded.
"""

import contextlib
import difflib
import importlib
import importlib.util
import inspect
import io
import json
import logging
import math
import pkgutil
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from decision.engine.batsim_words import job_completed, simulation_begins
from decision.engine.rules import EngineOptions
from decision.model.errors import ConfigError, LocalProtocolError, PolicyError
from decision.model.hosts import format_hosts, parse_hosts
from decision.model.platform import Host, Platform
from decision.model.record import FinalState
from decision.policies.loading import PolicySource
from decision.policies.options import PolicyLine
from decision.policies.policy import Plan
from decision.protocol import CodecError, Connection, JsonCodec, Message, Role
from decision.protocol import messages as m
from decision.protocol.messages import ExecuteJob, Hello, Init, JobCompleted, SimulationBegins
from decision.state.cluster import JobState
from decision.state.view import ClusterView

from .follower import announced_platform, hello, milliseconds, notification_of

# --- Finding and making a scheduler, by module or file ---

PYBATSIM_PREFIX = "pybatsim:"

_INSTALL = "pip install --no-deps pybatsim==3.2.1, then pip install docopt 'procset<2' 'sortedcontainers<3'"


def load_scheduler(spec: str, options: Mapping[str, Any]) -> Any:
    """Make the pybatsim scheduler that `spec` names; see `PybatsimAgent` for arguments and errors."""
    where, colon, name = spec.removeprefix(PYBATSIM_PREFIX).rpartition(":")
    if not (colon and where and name):
        raise ConfigError(f"policy {spec!r}: write {PYBATSIM_PREFIX}module:Class or {PYBATSIM_PREFIX}./file.py:Class")
    try:
        base = importlib.import_module("batsim.batsim").BatsimScheduler
    except ImportError as error:
        raise ConfigError(f"policy {spec!r} needs pybatsim 3.2.1 ({error}): {_INSTALL}") from error
    module = _load_file(spec, Path(where)) if where.endswith(".py") else _load_module(spec, where)
    recipe = getattr(module, name, None)
    if recipe is None:
        classes = [n for n, _ in inspect.getmembers(module, callable) if not n.startswith("_")]
        advice = _nearest(name, classes) or "look for the class in that module"
        raise ConfigError(f"policy {spec!r}: {module.__name__} has no {name!r}; {advice}")
    # of a class, or of a function of the second interface, as pybatsim's launcher does
    second = importlib.import_module("batsim.sched")
    if isinstance(recipe, FunctionType):
        recipe = second.as_scheduler()(recipe)
    if not (isinstance(recipe, type) and issubclass(recipe, (base, second.Scheduler))):
        raise ConfigError(f"policy {spec!r} does not derive from pybatsim's batsim.batsim.BatsimScheduler")
    with _blaming_user(spec, f"making it with options {json.dumps(dict(options), default=str)}"):
        scheduler = recipe(dict(options))
        return scheduler if isinstance(scheduler, base) else scheduler()


def _load_module(spec: str, name: str) -> ModuleType:
    with _blaming_user(spec, f"importing {name}"):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if not f"{name}.".startswith(f"{error.name}."):
                raise
            parent, _, _ = name.rpartition(".")
            path = getattr(sys.modules.get(parent), "__path__", None)
            siblings = [f"{parent}.{module.name}" for module in pkgutil.iter_modules(path)] if path else []
            advice = _nearest(name, siblings) or f"install it or name its file, {PYBATSIM_PREFIX}./file.py:Class"
            raise ConfigError(f"policy {spec!r}: module {error.name!r} not found; {advice}") from error


def _load_file(spec: str, path: Path) -> ModuleType:
    if not path.is_file():
        raise ConfigError(f"policy {spec!r}: file {str(path)!r} not found")
    description = importlib.util.spec_from_file_location(f"pybatsim_scheduler_{path.stem}", path)
    assert description is not None and description.loader is not None  # it ends in .py
    module = importlib.util.module_from_spec(description)
    sys.modules[description.name] = module
    with _blaming_user(spec, f"importing {path}"):
        # a file may import the modules of its folder, as under pybatsim's launcher
        folder = str(path.resolve().parent)
        sys.path.insert(0, folder)
        try:
            description.loader.exec_module(module)
        finally:
            sys.path.remove(folder)
    return module


@contextlib.contextmanager
def _blaming_user(spec: str, doing: str) -> Iterator[None]:
    try:
        yield
    except ConfigError:
        raise
    except (Exception, SystemExit) as error:
        raise ConfigError(f"policy {spec!r}: {doing} failed: {error_origin(error)}") from error


def error_origin(error: BaseException) -> str:
    """The error and its place in the source, in one line."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    text = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(": ")
    return f"{text} (in {frame.name}, {Path(frame.filename).name}:{frame.lineno})"


def _nearest(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {near[0]!r}?" if near else ""


def json_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of which texts that are JSON are its values."""
    values = dict(options)
    for name, value in options.items():
        if isinstance(value, str):
            with contextlib.suppress(ValueError):
                values[name] = json.loads(value)
    return values


def open_batsim(scheduler: Any, mailbox: Any) -> Any:
    """Make pybatsim's Batsim around a mailbox; its constructor answers the message that waits there."""
    module: Any = importlib.import_module("batsim.batsim")
    network = module.NetworkHandler
    module.NetworkHandler = lambda endpoint, timeout: mailbox
    try:
        return module.Batsim(scheduler, network_endpoint="", timeout=None)
    finally:
        module.NetworkHandler = network


# --- Between a Batsim 5 and a scheduler that knows Batsim 4: what one says, as the other would ---
#
# What cannot be said to Batsim 5 is refused by its codec or here, by name.


class Interpreter:
    """Translates one conversation; `name` is the scheduler's."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._hosts: tuple[Host, ...] = ()
        self._pstate: dict[int, int] = {}
        self._alloc: dict[str, str] = {}  # hosts of each job that runs
        self._calls = 0

    def greet(self) -> m.HelloData:
        """The answer to Batsim 5's first message; jobs and profiles may be registered without being asked for."""
        return hello(self._name, suspends=False)

    # --- From Batsim 5 ------------------------------------------------------------------------------------------

    def question(self, message: Message) -> Message:
        """A question, as Batsim 4 would ask it."""
        events = [translated for event in message.events if (translated := self._event(event)) is not None]
        return Message(message.now, tuple(events))

    def _event(self, event: m.Event) -> m.Event | None:
        match event:
            case m.SimulationBegins(data=data):
                self._hosts = announced_platform(data.compute_resources).hosts
                self._pstate = {host.id: host.initial_pstate for host in self._hosts}
                resources = tuple(
                    replace(
                        resource,
                        properties={"role": "", **resource.properties},
                        pstate=UNSET,
                        cores=UNSET,
                        speeds=UNSET,
                    )
                    for resource in data.compute_resources
                )
                data = replace(data, compute_resources=resources, external_events=UNSET, batsim=UNSET)
                return m.SimulationBegins(event.timestamp, data)
            case m.JobSubmitted(data=data):
                fields = {**data.job.fields, "profile": data.job.profile.rpartition("!")[2]}
                return m.JobSubmitted(event.timestamp, replace(data, job=m.JobDescription(**fields)))
            case m.JobCompleted(data=data):
                return m.JobCompleted(event.timestamp, replace(data, alloc=self._alloc.pop(data.job_id, "")))
            case m.ResourceStateChanged(data=data):
                self._pstate.update(dict.fromkeys(parse_hosts(data.resources), int(data.state)))
                return m.ResourceStateChanged(event.timestamp, replace(data, at_once=UNSET))
            case m.RequestedCall():
                return m.RequestedCall(event.timestamp)
            case m.ExternalEvent(data=data):
                return notification_of(event) or m.Notify(event.timestamp, m.NotifyData(type="generic", data=data.text))
        return event

    # --- To Batsim 5 --------------------------------------------------------------------------------------------

    def reply(self, message: Message) -> Message:
        """A reply to Batsim 4, as Batsim 5 takes it.

        Raises:
            PolicyError: if it says what Batsim 5 has no word for.
        """
        events: list[m.Event] = []
        for event in message.events:
            match event:
                case m.Query():
                    raise PolicyError(f"{self._name} asks for energy, which Batsim 5 tells only by probes")
                case m.CallMeLater(data=data):
                    self._calls += 1
                    call = m.CallMeLaterData(milliseconds(data.timestamp), f"call {self._calls}", "ms")
                    events.append(m.CallMeLater(event.timestamp, call))
                case m.SetResourceState(data=data):
                    pstate, groups = int(data.state), dict[bool, list[int]]()
                    for host in parse_hosts(data.resources, len(self._hosts)):
                        present, facts = self._pstate[host], self._hosts[host]
                        if present != pstate:
                            at_once = facts.is_computing_pstate(present) and facts.is_computing_pstate(pstate)
                            groups.setdefault(at_once, []).append(host)
                    for at_once, hosts in groups.items():
                        change = m.SetResourceStateData(format_hosts(hosts), data.state, at_once)
                        events.append(m.SetResourceState(event.timestamp, change))
                case _:
                    if isinstance(event, m.ExecuteJob):
                        self._alloc[event.data.job_id] = event.data.alloc
                    events.append(event)
        return Message(message.now, tuple(events))


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
        self._interpreter = Interpreter(spec)
        self._hearing = _Hearing(spec, json_options(options or {}))

    @property
    def finished(self) -> bool:
        """Whether the simulation has ended."""
        return self._connection.ended

    @property
    def now(self) -> float:
        """Simulated time of the last message, seconds."""
        return float(self._hearing.question.get("now", 0.0))

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
        try:
            reply = self._hearing.reply(message, question)
            if self._connection.version.begins_with_init:
                reply = self._interpreter.reply(reply)
            return self._connection.send(reply)
        except CodecError as error:
            raise self._blame(f"sent a command that Batsim does not know: {error}") from error
        except (LocalProtocolError, PolicyError) as error:
            raise self._blame(f"decided something impossible: {error}") from error
        except (Exception, SystemExit) as error:
            raise self._blame(f"failed: {error_origin(error)}") from error

    def _blame(self, deed: str) -> PolicyError:
        return PolicyError(f"t={self._hearing.question['now']} s: {self.spec} {deed}")


class _Hearing:
    """A scheduler, loaded, and what it answers when it hears Batsim's messages, as pybatsim passes them on."""

    def __init__(self, spec: str, options: dict[str, Any]) -> None:
        self._codec, self._mailbox, self._holdings = JsonCodec(), _Mailbox(), _Holdings()
        self._batsim: Any = None  # pybatsim's Batsim, made by the first message
        with prints_to_log():
            self._scheduler = load_scheduler(spec, options)

    @property
    def question(self) -> dict[str, Any]:
        """The last message, as JSON."""
        return self._mailbox.question

    def reply(self, message: Message, question: bytes) -> Message:
        """What it commands; `question` has the message's bytes.

        Raises:
            CodecError: for a command that Batsim does not know.
            PolicyError: for hosts that are not free.
        """
        self._holdings.note_ends(message)
        self._mailbox.question = json.loads(question)
        with prints_to_log():
            if self._batsim is None:
                self._batsim = open_batsim(self._scheduler, self._mailbox)
            else:
                self._batsim.do_next_event()
        reply = self._codec.decode(self._mailbox.reply)
        self._holdings.take(reply)
        return reply


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


# --- Under a guard -----------------------------------------------------------------------------------------------

_ENOUGH = 1e-6  # seconds: the last digit of times in messages
_HIDDEN = "hidden"  # what a job does, which no policy sees


class PybatsimPolicy:
    """A pybatsim scheduler as a policy, so that a guard can stand around it, which carries out a part of its plans.

    The scheduler believes that all it decides happens at once. Batsim says when a job ends and never when it begins, so
    that a start which the guard refuses may wait here, to be tried again at each decision, and the end of a job that
    the guard has started waits until the scheduler has started it, too: for the scheduler, some jobs take longer, and
    some no time. Where its hosts are taken by then, a job gets the free ones with the lowest ids.

    It may start and reject jobs and ask to be called; it hears of jobs and of its calls, and of nothing else.

    Args:
        spec: as for `PybatsimAgent`.
        options: as for `PybatsimAgent`.

    Raises:
        ConfigError: as `PybatsimAgent`.
    """

    def __init__(self, spec: str, options: Mapping[str, Any]) -> None:
        self.name, self._options, self._codec = spec, json_options(options), JsonCodec()
        self._hearing = _Hearing(spec, self._options)

    def reset(self, platform: Platform, seed: int) -> None:
        """A run begins on this platform; nothing is drawn here."""
        self._hearing = _Hearing(self.name, self._options)
        self._number: dict[str, int] = {}  # of each job that it was told of
        self._started: dict[int, list[int]] = {}  # hosts of the jobs that it has started, and whose end it was not told
        self._over: dict[int, JobCompleted] = {}  # ends of jobs that it has not started
        self._calls: list[float] = []  # seconds: when it asked to be called
        self._commands = self._ask(0.0, [simulation_begins(platform, (), EngineOptions())])

    def decide(self, cluster: ClusterView, plan: Plan) -> None:
        """Tell the scheduler what has happened, and plan what it has decided."""
        events, commands = self._news(cluster), self._commands
        while events or commands:
            commands = commands + (self._ask(cluster.now, events) if events else [])
            events = [end for command in commands if (end := self._take(command, cluster, plan)) is not None]
            commands = []
        self._commands = []
        for number, hosts in self._started.items():
            if cluster.arrays.job_state[number] == JobState.QUEUED:
                if set(hosts) <= set(plan.free_hosts):
                    plan.start(number, hosts)
                elif cluster.arrays.size[number] <= plan.nb_free:
                    plan.start(number)

    def _news(self, cluster: ClusterView) -> list[m.Event]:
        """Batsim's events since the last decision."""
        events: list[m.Event] = []
        for job in cluster.ended:
            final = FinalState(int(cluster.arrays.job_state[job.number]) - JobState.ENDED)
            if final != FinalState.REJECTED:
                done = int(final != FinalState.COMPLETED_SUCCESSFULLY)
                end = job_completed(job.end_time, job.id, final, done, format_hosts(job.hosts))
                if self._started.pop(job.number, None) is None:
                    self._over[job.number] = end
                else:
                    events.append(end)
        for number in range(len(self._number), int(cluster.arrays.nb_jobs)):
            job = cluster.job(number)
            self._number[job.id] = number
            if job.state == JobState.QUEUED:
                fields: dict[str, Any] = {"id": job.id, "subtime": job.submit_time, "res": job.size, "profile": _HIDDEN}
                fields |= {"walltime": job.walltime} if math.isfinite(job.walltime) else {}
                submitted = m.JobSubmittedData(job.id, m.JobDescription(**fields), {"type": _HIDDEN})
                events.append(m.JobSubmitted(job.submit_time, submitted))
        due = [time for time in self._calls if time <= cluster.now + _ENOUGH]
        self._calls = [time for time in self._calls if time > cluster.now + _ENOUGH]
        return events + [m.RequestedCall(cluster.now)] * len(due)

    def _ask(self, now: float, events: list[m.Event]) -> list[m.Event]:
        """What the scheduler commands when it hears of these events."""
        message = Message(now, tuple(events))
        try:
            reply = self._hearing.reply(message, self._codec.encode(message))
        except CodecError as error:
            raise PolicyError(f"t={now:.12g} s: {self.name} sent what Batsim does not know: {error}") from error
        except PolicyError as error:
            raise PolicyError(f"t={now:.12g} s: {self.name} decided something impossible: {error}") from error
        except (Exception, SystemExit) as error:
            raise PolicyError(f"t={now:.12g} s: {self.name} failed: {error_origin(error)}") from error
        return list(reply.events)

    def _take(self, command: m.Event, cluster: ClusterView, plan: Plan) -> JobCompleted | None:
        """Note what it commands; the end of a job that it starts and that is over already."""
        match command:
            case ExecuteJob(data=data) if data.job_id in self._number:
                number = self._number[data.job_id]
                if number in self._over:
                    return self._over.pop(number)
                self._started[number] = parse_hosts(data.alloc)
            case m.RejectJob(data=data) if data.job_id in self._number:
                if cluster.arrays.job_state[self._number[data.job_id]] == JobState.QUEUED:
                    plan.reject(self._number[data.job_id])
            case m.CallMeLater(data=data):
                self._calls.append(data.timestamp)
                plan.call_at(data.timestamp)
            case _:
                does = f"commands {type(command).__name__}, and under a guard it may start and reject jobs that came"
                raise PolicyError(f"t={cluster.now:.12g} s: {self.name} {does}, and ask to be called")
        return None


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
    guarded=PybatsimPolicy,
)
