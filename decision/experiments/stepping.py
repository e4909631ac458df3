"""A simulation that somebody else steps: in the embedded engine, whose state can be copied, or in an external Batsim.

Design
------
A `QuestionSource` gives a question, the cluster and an empty plan, and takes the plan with the next one: so whoever
steps it is to the simulation what a policy is. The embedded engine is asked directly. Batsim's conversation is that of
every other run (`run_to_folder`), in a thread, with a policy that hands each question over and waits; so events, times,
checks and errors are those of a run. Rejected: a second conversation with Batsim, for this alone.
"""

import copy
import tempfile
import threading
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Protocol

from decision.compiling.entry import Interface
from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.compiled import Allocations, HostRows
from decision.engine.kernels import arrays as a
from decision.engine.rules import EngineOptions
from decision.experiments import Engine
from decision.files.outputs_read import read_run_record
from decision.model.errors import ConfigError
from decision.model.platform import Platform
from decision.model.record import RunRecord
from decision.policies.policy import Plan, empty
from decision.policies.prepared import check_plan, first_fault
from decision.simulation import JobNames
from decision.state.cluster import ClusterState, PlatformFacts
from decision.state.plan_arrays import FINE, PlanArrays
from decision.state.view import ClusterView

from .inputs import LoadedInputs, PolicyChoice
from .run import RealBatsim, run_to_folder

Question = tuple[ClusterView, Plan]


class QuestionSource(Protocol):
    """Where the questions of a stepped simulation come from."""

    def ask(self) -> Question | None:
        """Carry the last question's plan out, and go on to the next one; None: the simulation is over."""

    def record(self) -> RunRecord:
        """What Batsim writes, of a simulation that is over."""

    def copied(self) -> tuple["QuestionSource", Question]:
        """The same at this question, for another future. Raises ConfigError where that cannot be."""

    def close(self) -> None:
        """End the process that runs beside, if there is one."""


class EmbeddedSource:
    """Questions that the embedded engine asks."""

    def __init__(self, case: LoadedInputs) -> None:
        options = EngineOptions(energy=case.inputs.energy, forward_unknown_events=bool(case.events))
        self._engine = EmbeddedEngine(case.platform, case.workloads, case.events, options)
        self._engine.world.sim.registration_open = 0
        self._question: Question | None = None

    def ask(self) -> Question | None:
        """The same as of `QuestionSource`."""
        engine = self._engine
        if self._question is not None:
            if _has_fault.from_python(engine.state.address, engine.facts.address, engine.plan.address):
                check_plan(engine.state, engine.facts, engine.plan, JobNames(engine))
            engine.reply(float(engine.state.now))
            if engine.advance() == a.DONE:
                return None
        empty.from_python(engine.plan.address, engine.state.address)
        self._question = self._here()
        return self._question

    def _here(self) -> Question:
        engine = self._engine
        view = ClusterView(engine.state, engine.facts, JobNames(engine))
        return view, Plan(engine.plan, engine.state, engine.facts)

    def record(self) -> RunRecord:
        """The same as of `QuestionSource`."""
        return self._engine.record()

    def copied(self) -> tuple["EmbeddedSource", Question]:
        """As of `QuestionSource`: all arrays that change are copied, what is known of jobs and hosts is shared."""
        one, other = self._engine, copy.copy(self._engine)
        if one.has_network:
            raise ConfigError("a simulation with a network cannot be copied; leave communication out of its profiles")
        if one.host_rows.is_aside or one.allocations.is_aside:
            raise ConfigError("a simulation of so many jobs cannot be copied any more; take fewer")
        kept: dict[int, Any] = {}  # arrays of two names stay one array
        world, parts = one.world, dict[str, Any]()
        for name in ("state", "sim", "rows", "plan"):
            bundle = getattr(world, name)
            arrays = {field: kept.setdefault(id(array), array.copy()) for field, array in bundle.arrays().items()}
            parts[name] = type(bundle)(**arrays)
        truth = world.truth._replace(workload_end=world.truth.workload_end.copy())
        other.world = world._replace(truth=truth, **parts)
        other.host_rows, other.allocations = HostRows(), Allocations()
        made = copy.copy(self)
        made._engine = other
        made._question = made._here()
        return made, made._question

    def close(self) -> None:
        """Nothing runs beside the embedded engine."""


@Interface(int, ClusterState, PlatformFacts, PlanArrays).entry
def _has_fault(state, facts, plan):
    """Whether `check_plan` refuses the plan, without numba's start."""
    return 0 if first_fault(state, facts, plan)[1] == FINE else 1


class _Stopped(BaseException):
    """Raised in the thread of a simulation that nobody steps any more; no Exception, so that no policy's."""


class _Puppet:
    """A policy that hands each question over, and decides what it is told."""

    def __init__(self, energy: bool) -> None:
        self.switches_hosts = energy
        self.questions: SimpleQueue[Any] = SimpleQueue()
        self.answers: SimpleQueue[bool] = SimpleQueue()

    def reset(self, platform: Platform, seed: int) -> None:
        """A run begins on this platform."""

    def decide(self, cluster: ClusterView, plan: Plan) -> None:
        """Wait until somebody has written the plan."""
        self.questions.put((cluster, plan))
        if not self.answers.get():
            raise _Stopped


class BatsimSource:
    """An external Batsim.

    Args:
        case: what is simulated; its inputs are files.
        command: Batsim's.
    """

    def __init__(self, case: LoadedInputs, command: str) -> None:
        self._puppet = _Puppet(case.inputs.energy)
        self._folder = tempfile.TemporaryDirectory(prefix="decision-")
        self._record: RunRecord | None = None
        self._asked = False
        choice = PolicyChoice(policy="stepped", own=self._puppet)
        batsim = RealBatsim(command=command)
        self._thread = threading.Thread(target=self._run, args=(case, choice, batsim), daemon=True)
        self._thread.start()

    def _run(self, case: LoadedInputs, choice: PolicyChoice, batsim: RealBatsim) -> None:
        try:
            folder = Path(self._folder.name)
            run_to_folder(case, choice, folder, engine=Engine.BATSIM, batsim=batsim)
            self._puppet.questions.put(read_run_record(folder))
        except _Stopped:
            pass
        except BaseException as error:
            self._puppet.questions.put(error)

    def ask(self) -> Question | None:
        """The same as of `QuestionSource`."""
        if self._asked:
            self._puppet.answers.put(True)
        self._asked = True
        found = self._puppet.questions.get()
        if isinstance(found, BaseException):
            self.close()
            raise found
        if isinstance(found, RunRecord):
            self._record = found
            self.close()
            return None
        question: Question = found
        return question

    def record(self) -> RunRecord:
        """The same as of `QuestionSource`."""
        assert self._record is not None
        return self._record

    def copied(self) -> tuple[QuestionSource, Question]:
        """As of `QuestionSource`: Batsim cannot be copied."""
        raise ConfigError("a simulation in Batsim cannot be copied; take engine='embedded'", field="engine")

    def close(self) -> None:
        """End Batsim, if it still runs."""
        if self._thread.is_alive():
            self._puppet.answers.put(False)
            self._thread.join(timeout=10)
        self._folder.cleanup()
