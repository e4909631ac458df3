"""Episodes in an external Batsim: a transport in place of the embedded engine's event loop.

An environment asks its engine by an address (`Sim.root`). That of the embedded engine is compiled code, and here it is
a callback: BEGIN_RUN takes a Batsim that waits with the episode's jobs, CARRY_OUT answers its question by the plan and
reads the next question into the same state. All around is the one loop of `episode`: cycles, choices, rewards and
metrics come from the same kernels on the same arrays. What a message does to the state, and a plan to the messages, is
`decision.batsim.follower`, which `decision serve` decides with, too.

Times are the workload's own, as in the embedded engine: Batsim lets the time before an episode pass at once. Its jobs
are named by their rows of the trace, so that those of one instant come in the same order.

The next episode's Batsim is started when one begins, where episodes are drawn: the draw is known beforehand. It has
read its files when its turn comes.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from decision.batsim.dynamic_jobs import Suspensions
from decision.batsim.episodes import EpisodeBatsim, EpisodeBatsims
from decision.batsim.follower import FOLLOWED, Follower, announced_platform, hello, job_arrives, job_is_worth, time_is
from decision.compiling.jit import compile_ahead
from decision.engine.kernels.arrays import ASK, DEADLOCK, DONE, GROW
from decision.engine.kernels.server import BEGIN_RUN, ENGINE
from decision.engine.truth import submission_order
from decision.files.profiles import converted_lines, profile_json
from decision.files.text import with_short_numbers
from decision.model.errors import ConfigError, StuckError, raise_interruption
from decision.model.platform import Platform
from decision.model.workload import GENERIC, POWER_SUPPLY, used_profiles
from decision.policies.traits import SupplySettings
from decision.protocol import messages as m
from decision.state import transitions

from .environment import Environment
from .episode import expected_beginning
from .setup import Setup

_NAME = "decision's environments"  # as a Batsim 5 is told
_WORKLOAD = "w0"  # as Batsim names the only one


class _Full(Exception):  # noqa: N818 - no error
    """The environment has no room for another job: the episode is cut off, as in the embedded engine."""


class EpisodeFollower(Follower):
    """The cluster of an episode, in the arrays of an environment.

    Args:
        env: whose arrays they are, rewound.
        platform: that Batsim must announce.
        supply: what happens to jobs that are suspended; None where none can be.
    """

    def __init__(self, env: Environment, platform: Platform, supply: SupplySettings | None) -> None:
        super().__init__(supply or SupplySettings())
        self._env, self._platform, self._suspends = env, platform, supply is not None
        self._state, self._facts, self._plan = env.state, env.facts, env.plan

    def follow(self, question: bytes) -> list[m.DecisionEvent]:
        """As `hear`; afterwards it is as late as Batsim says."""
        said = self.hear(question)
        time_is.from_python(self._state.address, self.now)
        return said

    def answer(self, said: list[m.DecisionEvent]) -> bytes:
        """The reply by the environment's plan, after what was said when the question was heard."""
        if self.asked:
            actions = int(self._plan.nb_actions)
            self._carry_out(actions, said)
            if not actions:
                transitions.take_ends(self._state)
            self._end_registration(said)
        return self.say(said)

    @property
    def ends(self) -> bool:
        """Whether the last message says that all is over."""
        return self._connection.ending

    def _greet(self, event: m.Init, commands: list[m.DecisionEvent]) -> None:
        commands.append(m.Hello(self.now, hello(_NAME, self._suspends)))

    def _begin(self, event: m.SimulationBegins, commands: list[m.DecisionEvent]) -> None:
        announced = [host.name for host in announced_platform(event.data.compute_resources).hosts]
        known = [host.name for host in self._platform.hosts]
        if announced != known:
            where = self._platform.path or "the platform"
            found = f"Batsim has {len(announced)} hosts, from {announced[0]}, in its order"
            raise ConfigError(f"{where}: {len(known)} hosts, from {known[0]}; {found}; let their names be in order")
        self._registers = self._dynamic = self._suspends
        self._suspensions = Suspensions(event.data.profiles if self._suspends else {}, self._supply.restart)
        self._begun = True

    def _submit(self, event: m.JobSubmitted, commands: list[m.DecisionEvent]) -> None:
        job, job_id = event.data.job, event.data.job_id
        if job_id in self._number:  # Batsim acknowledges what is left of a job
            return
        row, truth, sim = int(job_id.partition("!")[2]), self._env.truth, self._env.sim
        # what the message does not say in numbers is the workload's own
        number = job_arrives.from_python(
            self._state.address,
            event.timestamp,
            job.res,
            job.walltime,
            int(truth.user[row]),
            float(truth.estimate[row]),
        )
        if len(truth.worth):
            job_is_worth.from_python(self._state.address, number, *truth.worth[row].tolist())
        self._remember(job_id, number)
        sim.truth_of[number] = row
        sim.workload_at[0] = sim.workload_sent[0] = row + 1
        if self._registers:
            self._suspensions.note(number, job_id, str(job.fields.get("profile", "")), event.data.profile)

    def _remember(self, job_id: str, number: int) -> None:
        if self._state.nth_rest[number]:
            sim = self._env.sim
            sim.truth_of[number] = sim.truth_of[self._state.origin[number]]
            sim.nb_rests += 1
        super()._remember(job_id, number)

    def _grow(self) -> None:
        raise _Full


class _Ready(NamedTuple):
    """A Batsim that waits with the jobs of an episode."""

    rows: tuple[int, int]
    session: EpisodeBatsim


class ExternalEngine:
    """What an environment asks in place of the embedded engine.

    Attributes:
        error: what was raised within a kernel, through which nothing can be raised.

    Args:
        home: of all environments.
        env: whose engine it becomes.
    """

    def __init__(self, home: "ExternalEngines", env: Environment) -> None:
        self._home, self._env = home, env
        self.error: BaseException | None = None
        self._session: EpisodeBatsim | None = None
        self._ready: _Ready | None = None
        self._follower: EpisodeFollower
        self._said: list[m.DecisionEvent] = []
        self._word = env.progress.word[0]
        self._again = False  # whether the same episode is expected once more
        self._callback = ENGINE.callback(self._asked)
        env.sim.root = self._callback.address

    def _asked(self, *given: Any) -> int:
        """As `decision.engine.kernels.server.engine`; nothing is raised."""
        try:
            raise_interruption()
            if self.error is not None:  # nobody has heard of it yet
                return DEADLOCK
            return self._begin() if given[-2] == BEGIN_RUN else self._carry_out()
        except StuckError:
            return DEADLOCK
        except _Full:
            return GROW
        except BaseException as error:  # an interruption, too, must not get lost in the kernel
            self.error = error
            return DEADLOCK

    def _begin(self) -> int:
        """A new episode; its first question is open then."""
        env, rules = self._env, self._home.setup.rules
        self.end()
        rows = int(env.sim.workload_at[0]), int(env.truth.workload_end[0])
        clock = float(env.sim.now)
        if rules.opens_first and clock > 0.0:
            raise ConfigError(f"an episode that begins with a choice at {clock:g} s cannot be Batsim's, from 0 s on")
        # another episode than expected; or it was killed while it waited, which is no reason to stop
        if self._ready is not None and (self._ready.rows != rows or self._ready.session.over):
            self._ready.session.end()
            self._ready = None
        ready, self._ready = self._ready or self._home.start(env, rows, clock), None
        self._session = ready.session
        self._follower = EpisodeFollower(env, self._home.setup.platform, self._home.setup.supply)
        self._said = self._follower.hear(self._session.receive())
        while not self._follower.asked:  # a Batsim 5 greets first
            self._session.send(self._follower.say(self._said))
            self._said = self._follower.hear(self._session.receive())
        self._prepare(rows, clock)
        return 0

    def _prepare(self, rows: tuple[int, int], clock: float) -> None:
        """Let the next episode's Batsim read its files, where it is known which episode that is."""
        env, beginnings = self._env, self._env.beginnings
        word, before = env.progress.word[0], self._word
        self._word = word
        self._again = self._home.setup.rules.baseline_action >= 0 and not self._again
        if self._again:
            self._ready = self._home.start(env, rows, clock)
        elif word != before or self._drawn:
            self._drawn = True
            which = expected_beginning.from_python(beginnings.address, env.progress.address)
            rows = int(beginnings.row[which]), int(beginnings.last[which])
            self._ready = self._home.start(env, rows, float(beginnings.clock[which]))

    _drawn = False  # whether episodes are drawn

    def _carry_out(self) -> int:
        """Answer by the plan, and read the next question into the state."""
        session, follower = self._session, self._follower
        if session is None:
            return DEADLOCK
        session.send(follower.answer(self._said))
        if follower.finished:
            return DONE
        self._said = follower.follow(session.receive())
        return ASK

    def end(self) -> None:
        """End the Batsim of this episode, if it runs."""
        if self._session is not None:
            self._session.end()
            self._session = None


class ExternalEngines:
    """The engines of some environments, and the files of their Batsims.

    Args:
        setup: of the environments; its engine says which Batsim.
        envs: the environments.

    Raises:
        ConfigError: if Batsim is not found, or the jobs cannot be written for it.
    """

    def __init__(self, setup: Setup, envs: Sequence[Environment]) -> None:
        assert setup.engine is not None
        self.setup, truth = setup, setup.trace.truth
        compile_ahead(*FOLLOWED, job_is_worth, time_is, expected_beginning)
        switches = {
            "-E": bool(setup.rules.energy),
            "--enable-dynamic-jobs": setup.supply is not None,
            "--forward-unknown-events": bool(len(truth.list_end)),
        }
        self._jobs = _JobTexts(setup)
        self._batsims = EpisodeBatsims(
            setup.engine, setup.platform, [word for word, is_on in switches.items() if is_on]
        )
        self.engines = [ExternalEngine(self, env) for env in envs]

    def start(self, env: Environment, rows: tuple[int, int], clock: float) -> _Ready:
        """A Batsim that simulates these rows of the trace."""
        workload = self._jobs.workload(*rows)
        if self._batsims.new:
            workload = b"".join(converted_lines(workload, "5", "the episode"))
        events = b"".join(self._events(clock)) if len(env.truth.list_end) else None
        return _Ready(rows, self._batsims.start(workload, events))

    def _events(self, clock: float) -> Iterator[bytes]:
        """The supply of power as Batsim's external events: the last one that is over by then, and all later ones."""
        truth = self.setup.trace.truth
        begin = max(int(np.searchsorted(truth.event_time, clock, side="right")) - 1, 0)
        for event in range(begin, len(truth.event_time)):
            first = int(truth.event_host_end[event - 1]) if event else 0
            hosts, *forecast = truth.event_host[first : truth.event_host_end[event]].tolist()
            time = max(float(truth.event_time[event]), clock)
            fields: dict[str, Any] = {"type": POWER_SUPPLY, "hosts": hosts, "forecast": forecast}
            if self._batsims.new:
                fields = {"type": GENERIC, "data": msgspec.json.encode(fields).decode()}
            yield with_short_numbers(msgspec.json.encode({"timestamp": time, **fields})) + b"\n"

    def check(self) -> None:
        """Raise what was raised within kernels since the last look."""
        errors = [engine.error for engine in self.engines if engine.error is not None]
        for engine in self.engines:
            engine.error = None
        if errors:  # an interruption before all
            raise next((error for error in errors if not isinstance(error, Exception)), errors[0])

    def close(self) -> None:
        """End the Batsims of all environments."""
        self._batsims.close()


class _JobTexts:
    """The trace's jobs as Batsim reads them: what is the same in all episodes is written once."""

    def __init__(self, setup: Setup) -> None:
        workload = setup.workload
        self._submit, self._workload = setup.trace.truth.submit_time, workload
        jobs = list(submission_order(workload.jobs))
        self._jobs = [
            with_short_numbers(msgspec.json.encode({"res": j.size, "walltime": j.walltime, "profile": j.profile}))[1:]
            for j in jobs
        ]
        self._names = [job.profile for job in jobs]
        self._profiles: dict[str, dict[str, bytes]] = {}  # text of each, and of what it is composed of
        self._head = b'{"nb_res":%d,"jobs":[\n' % len(setup.platform.hosts)

    def workload(self, first: int, last: int) -> bytes:
        """The rows first .. last - 1 as a workload of Batsim 4, each with its number as its id."""
        count, profiles = len(self._jobs), dict[str, bytes]()
        for name in dict.fromkeys(self._names[row % count] for row in range(first, min(last, first + count))):
            if name not in self._profiles:
                self._profiles[name] = {
                    part: msgspec.json.encode(part) + b":" + with_short_numbers(profile_json(self._workload, part))
                    for part in used_profiles(self._workload.profiles, [name])
                }
            profiles |= self._profiles[name]
        submit = self._submit[first:last].tolist()
        jobs = (
            b'{"id":"%09d","subtime":%s,' % (row, f"{time:.15g}".encode()) + self._jobs[row % count]
            for row, time in enumerate(submit, first)
        )
        return b"".join(
            (self._head, b",\n".join(jobs), b'\n],"profiles":{\n', b",\n".join(profiles.values()), b"\n}}\n")
        )
