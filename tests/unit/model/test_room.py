"""Where an array of a kernel is full, the kernel says so and writes nothing beyond it."""

import numba
import numpy as np
import pytest
from helpers.policy_toys import Toy, platform

from decision.batsim.agent import CheckedPolicy
from decision.compiling.bundle import F8, Bundle
from decision.compiling.jit import kernel
from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.kernels import arrays as a
from decision.engine.kernels.clock import begin_sleep, log, put
from decision.engine.kernels.commands import handle_command, note_end
from decision.engine.kernels.energy import ROW_START, energy_row, host_row, pstate_row
from decision.engine.rules import EngineOptions
from decision.model.errors import InternalError
from decision.model.workload import Delay, Job, Workload
from decision.policies.backfill import take
from decision.policies.options import Backfill, Order, PolicyConfig, Power
from decision.rl.envs import DbfEnv
from decision.rl.schedulers.decision_points import begin_decision, new_cycles
from decision.state import plan_arrays as p
from decision.state import transitions

CANARY, BEYOND = 77, 8
SLEEPING_PSTATE = 1


class Numbers(Bundle):
    values: F8


class Guarded:
    """An engine to which three jobs have come, whose arrays go on beyond their ends with canaries."""

    def __init__(self) -> None:
        jobs = [Job(id=f"w0!{i}", submit_time=0.0, size=1, walltime=10.0, profile="d") for i in range(3)]
        workload = Workload(name="w0", jobs=jobs, profiles={"d": Delay(5.0)}, nb_res=2)
        self.engine = EmbeddedEngine(platform(2, sleeps=True), [workload], (), EngineOptions(energy=True))
        self.engine.reply(0.0)
        self.engine.advance()
        self._longer: list[tuple[int, np.ndarray]] = []
        world = self.engine.world
        own = {name: self._with_canaries(getattr(world, name)) for name in ("state", "sim", "rows", "plan")}
        self.world = world._replace(**own)

    def _with_canaries(self, bundle: Bundle) -> Bundle:
        arrays = {}
        for name, array in bundle.arrays().items():
            if not array.ndim:
                arrays[name] = array
                continue
            longer = np.full((len(array) + BEYOND, *array.shape[1:]), CANARY, array.dtype)
            longer[: len(array)] = array
            arrays[name] = longer[: len(array)]
            self._longer.append((len(array), longer))
        return type(bundle)(**arrays)

    @property
    def state(self):
        return self.world.state

    @property
    def plan(self):
        return self.world.plan

    def start(self, job: int, host: int) -> None:
        hosts = np.array([host], np.int32)
        transitions.start(self.state, job, hosts, hosts, 0, 1)

    def command(self, kind: int, job: int, *hosts: int) -> None:
        p.clear(self.plan, self.state)
        action = p.add(self.plan, kind, job)
        self.plan.value[action] = SLEEPING_PSTATE
        for host in hosts:
            p.add_interval(self.plan, action, host, host)
        handle_command(self.world, action)

    def is_intact(self) -> bool:
        return all((longer[end:] == CANARY).all() for end, longer in self._longer)


def fill(counter: str, array: str):
    """Let a counter, of the simulation or of the array's bundle, say that an array, ``bundle.field``, is full."""

    def to_the_brim(given: Guarded) -> None:
        bundle, field = array.split(".")
        holder = getattr(given.world, bundle)
        setattr(given.world.sim if bundle == "rows" else holder, counter, len(getattr(holder, field)))

    return to_the_brim


FULL = {
    "jobs": (fill("nb_jobs", "state.size"), lambda g: transitions.submit(g.state, 1, 1.0, -1)),
    "allocations": (fill("nb_intervals", "state.interval_first"), lambda g: g.start(0, 0)),
    "running jobs": (fill("nb_running", "state.running"), lambda g: g.start(0, 0)),
    "ended jobs": (
        lambda g: (g.start(0, 0), fill("nb_ended", "state.ended")(g)),
        lambda g: transitions.end(g.state, g.world.facts, 0, 0),
    ),
    "no running job": (lambda g: None, lambda g: transitions.end(g.state, g.world.facts, 0, 0)),
    "actions": (fill("nb_actions", "plan.kind"), lambda g: p.add(g.plan, p.START, 0)),
    "intervals of a plan": (
        lambda g: (p.add(g.plan, p.START, 0), fill("nb_intervals", "plan.first")(g)),
        lambda g: p.add_interval(g.plan, 0, 0, 0),
    ),
    "messages": (
        lambda g: setattr(g.world.sim, "mail_tail", g.world.sim.mail_head + len(g.world.sim.mail)),
        lambda g: put(g.world, 0),
    ),
    "log": (
        lambda g: (setattr(g.world.sim, "log_sent", 0), fill("nb_logged", "sim.log_kind")(g)),
        lambda g: log(g.world, a.LOG_CALLED, 0, 0.0),
    ),
    "activities": (fill("nb_activities", "sim.left"), lambda g: begin_sleep(g.world, 1.0, a.CALL_IS_DUE)),
    "instant activities": (fill("nb_instant", "sim.instant"), lambda g: begin_sleep(g.world, 0.0, a.CALL_IS_DUE)),
    "energy rows": (fill("nb_energy_rows", "rows.energy_time"), lambda g: energy_row(g.world, ROW_START)),
    "pstate rows": (fill("nb_pstate_rows", "rows.pstate_time"), lambda g: pstate_row(g.world, 0, 0)),
    "host rows": (fill("nb_host_rows", "rows.host_time"), lambda g: host_row(g.world)),
    "finished jobs": (fill("nb_finished", "sim.finished"), lambda g: note_end(g.world, 0)),
    "switch requests": (fill("nb_switches", "sim.switch_left"), lambda g: g.command(p.SET_PSTATE, -1, 0)),
    "hosts of switches": (fill("nb_switch_intervals", "sim.switch_first"), lambda g: g.command(p.SET_PSTATE, -1, 0)),
    "kill requests": (fill("nb_kills", "sim.kill_begin"), lambda g: g.command(p.KILL, 0)),
    "jobs to kill": (fill("nb_kill_jobs", "sim.kill_job"), lambda g: g.command(p.KILL, 0)),
}


@pytest.mark.parametrize("what", FULL)
def test_a_full_array_of_the_engine_is_refused(what):
    given = Guarded()
    make_full, write = FULL[what]
    make_full(given)
    with pytest.raises(InternalError):
        write(given)
    assert given.is_intact()


SHORT = {
    "chosen": PolicyConfig(),
    "sorted": PolicyConfig(order=Order.SJF),
    "release_time": PolicyConfig(backfill=Backfill.EASY),
    "step_time": PolicyConfig(backfill=Backfill.CONSERVATIVE),
}


@pytest.mark.parametrize("field", SHORT)
def test_a_full_memory_of_a_policy_is_refused(field):
    toy = Toy(4, SHORT[field])
    longer = getattr(toy.memory, field).copy()
    longer[2:] = CANARY
    toy.memory = toy.memory._replace(**{field: longer[: 0 if field == "release_time" else 2]})
    for size in (1, 1, 1, 2):
        toy.submit(size, 10.0)
    with pytest.raises(InternalError):
        toy.decide()
    assert (longer[2:] == CANARY).all()


def test_no_more_jobs_are_chosen_than_there_are_hosts():
    chosen = np.zeros(2, np.int32)
    assert take(chosen, 1, 5) == 2
    with pytest.raises(InternalError):
        take(chosen, 2, 6)
    assert chosen.tolist() == [0, 5]


def test_cycles_without_room_for_the_queue_are_refused():
    toy = Toy(4, PolicyConfig(power=Power.NEVER), jobs=2)
    cycles = new_cycles(toy.state)
    toy.grow(4)
    for _ in range(3):
        toy.submit(1, 10.0)
    with pytest.raises(InternalError):
        begin_decision(toy.state, cycles)


class Fails:
    def reset(self, platform, seed):
        pass

    def decide(self, cluster, plan):
        raise InternalError("an array is full")


def test_a_full_array_is_not_said_to_be_the_fault_of_the_policy_in_python_that_called_the_kernel():
    toy = Toy(2, PolicyConfig())
    with pytest.raises(InternalError, match="an array is full"):
        CheckedPolicy(Fails(), toy.facts, []).decide(toy.state, toy.plan, 0.0)


@kernel
def read(numbers, at):
    return numbers.values[at]


@pytest.mark.skipif(not numba.config.BOUNDSCHECK, reason="needs NUMBA_BOUNDSCHECK=1")
def test_kernels_check_bounds_where_asked_to():
    numbers = Numbers(values=np.zeros(2))
    assert read(numbers, 1) == 0.0
    with pytest.raises(IndexError):
        read(numbers, 2)


@pytest.fixture
def env() -> DbfEnv:
    jobs = [Job(id=f"w0!{i}", submit_time=0.0, size=1, walltime=10.0, profile="d") for i in range(9)]
    env = DbfEnv(workload=Workload(name="w0", jobs=jobs, profiles={"d": Delay(5.0)}, nb_res=2), jobs=9, head=4)
    env.reset(seed=1)
    return env


def test_an_episode_has_no_more_choices_than_there_is_room_for(env):
    episode = env._batch.envs[0].progress
    episode.nb_steps = len(episode.actions)
    with pytest.raises(InternalError):
        env.step(0)


def test_an_environment_whose_arrays_would_have_to_grow_says_so(env):
    state = env._batch.envs[0].state
    state.nb_intervals = len(state.interval_first)
    with pytest.raises(InternalError):
        for _ in range(9):  # the arrivals of this instant
            env.step(env.encoder.window)
