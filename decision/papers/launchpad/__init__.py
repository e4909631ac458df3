"""Launchpad's claims on a green datacenter: heuristics, cloning, offline and online learning, at several sizes.

The paper publishes neither its workload nor its power. Here jobs are those of `decision workload preset green --price
qos`, at 120 % of what all hosts can do, and power is that of `decision workload supply`. Rollouts are stretches of
so many jobs in a row, or as the paper has it of so many steps, under the power of that time, on an idle datacenter.
Each value is a share of the value that was submitted: the interquartile mean of rollouts that nobody learned from, so
many of each seed, with its interval; `claims` has how a claim is judged. Budgets differ in how much is learned: a unit
is that many updates for a thousand of the paper's, so that the ratios are the paper's.
"""

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from decision.experiments.inputs import LogOnHosts
from decision.experiments.statistics import middle_mean
from decision.experiments.training import train_to_folder
from decision.experiments.worth import join_parts, value_bound, value_share
from decision.files.generate.events import SupplyModel, forecasts, green_power, supplied_hosts
from decision.files.generate.paper_workloads import GreenModel, green_workload
from decision.files.generate.platforms import networked
from decision.files.text import InputFacts
from decision.files.workload import Selection
from decision.model.demand import DEADLINE, submit_times, worths
from decision.model.platform import Flat, Link, Platform, PowerState
from decision.model.record import Floats
from decision.model.workload import POWER_SUPPLY, MachineEvent, Workload
from decision.papers.campaign import (
    Asked,
    Campaign,
    PaperAgent,
    Part,
    Shown,
    TrainingHours,
    price_line,
    training_folder,
    write_arrays,
)
from decision.rl.envs import Setup, evaluate, make_setup
from decision.rl.envs.demonstrations import Demonstrations, record_schedules, replay_schedules
from decision.rl.learning.choices import collect, write_choices
from decision.rl.learning.config import TrainConfig, load_config
from decision.rl.learning.deploy import LearnedPolicy, learned_policy
from decision.rl.learning.schedulers import choosing_setup
from decision.rl.schedulers import launchpad as obs
from decision.simulation import simulate_workloads

from . import claims
from .claims import HEURISTICS, PUBLISHED_AGREEMENT

# The datacenters, and what heuristics and no schedule at all can get there.

RATE = 1.2  # host-seconds that arrive per host-second
WORLD_STEP = 60.0  # seconds
LEARNED_WORLD = 0  # seed of the world that is learned from; those of rollouts are above
_MOST_STEPS_MORE = 60  # of the supply, after the last deadline
BOUND = "bound"


class GreenWorld(NamedTuple):
    """A datacenter, its jobs, and its power."""

    platform: Platform
    workload: Workload
    events: tuple[MachineEvent, ...]  # none: all hosts always have power


@functools.lru_cache(maxsize=4)
def world(hosts: int, intermittent: bool, seed: int, jobs: int, battery: float = 0.0) -> GreenWorld:
    """Jobs and power that depend on the seed; a battery that can power all hosts for so many hours."""
    model = GreenModel(hosts=hosts, rate=RATE, most_hosts=max(1, hosts // 2), step=WORLD_STEP, price_by_qos=True)
    workload = green_workload(np.random.default_rng([seed, hosts]), jobs, model)
    platform = networked(Flat(hosts, Link(1.25e9, 0.0)), (PowerState(1e9),))
    if not intermittent:
        return GreenWorld(platform, workload, ())
    rows = worths(workload)
    assert rows is not None
    steps = int(rows[:, DEADLINE].max() / WORLD_STEP) + _MOST_STEPS_MORE
    supply = SupplyModel(hosts=hosts, steps=steps, step=WORLD_STEP, battery=battery * hosts)
    rng = np.random.default_rng([seed, hosts, 1])
    return GreenWorld(platform, workload, power_events(rng, green_power(rng, supply), supply))


def power_events(rng: np.random.Generator, power: Floats, model: SupplyModel) -> tuple[MachineEvent, ...]:
    """The events that `decision.files.generate.events.supply_lines` writes, of power by step (S,) in hosts."""
    powered = supplied_hosts(power, model)
    numbers = np.column_stack([powered, forecasts(rng, powered, model)]).tolist()
    return tuple(
        MachineEvent(timestamp=step * model.step, type=POWER_SUPPLY, hosts=tuple(row))
        for step, row in enumerate(numbers)
    )


def rollout_jobs(whole: GreenWorld, rollouts: int, jobs: int, steps: int = 0) -> list[slice]:
    """The jobs of each rollout: so many in a row, or what is submitted in so many steps of the world."""
    if not steps:
        return [slice(number * jobs, (number + 1) * jobs) for number in range(rollouts)]
    submit = submit_times(whole.workload)
    ends = np.searchsorted(submit, submit[0] + WORLD_STEP * steps * np.arange(rollouts + 1)).tolist()
    return [slice(*both) for both in itertools.pairwise(ends)]


def jobs_in(hosts: int, steps: int) -> int:
    """How many jobs of a world come in so many of its steps, and a tenth more."""
    submit = submit_times(world(hosts, False, LEARNED_WORLD, _SAMPLE).workload)
    return int(1.1 * _SAMPLE * steps * WORLD_STEP / (submit[-1] - submit[0]))


_SAMPLE = 1000  # jobs


def rollout(whole: GreenWorld, stretch: slice) -> GreenWorld:
    """One of the stretches of a world."""
    workload = replace(whole.workload, jobs=whole.workload.jobs[stretch])
    rows = worths(workload)
    assert rows is not None
    first, last = float(submit_times(workload).min()), float(rows[:, DEADLINE].max()) + WORLD_STEP
    kept = [event for event in whole.events if first - WORLD_STEP < event.timestamp <= last]
    return GreenWorld(whole.platform, workload, tuple(kept))


def heuristic_shares(whole: GreenWorld, policy: str, rollouts: Sequence[slice]) -> Floats:
    """(R,) value that ended over value that was submitted, of each rollout."""
    found = []
    for stretch in rollouts:
        part = rollout(whole, stretch)
        record = simulate_workloads(part.platform, [part.workload], policy, events=part.events)
        found.append(value_share(join_parts(record.jobs), record.worth))
    return np.array(found)


def bound_shares(whole: GreenWorld, rollouts: Sequence[slice]) -> Floats:
    """(R,) likewise, that no schedule can exceed."""
    parts = [rollout(whole, stretch) for stretch in rollouts]
    return np.array([value_bound(p.workload, len(p.platform.hosts), p.events, WORLD_STEP).share for p in parts])


BC, OFFLINE, ONLINE, BOTH = "BC", "Offline", "Online", "Offline+Online"
MIXES = {  # heuristics by equal shares of the transitions
    "qos": ("QoS",),
    "qos_sjf": ("QoS", "SJF"),
    "combo": ("SJF", "QoS", "FCFS", "HVF"),
    "random": ("random",),
}
_POLICIES = {**HEURISTICS, "random": "random+first-fit"}
_UPDATES = {BC: 500, OFFLINE: 500, ONLINE: 1000, BOTH: 1000}  # of the paper, thousands; online an update a step
_ALGORITHMS = {BC: "bc", OFFLINE: "crr", ONLINE: "sac", BOTH: "sac"}
_BEFORE = 50  # thousands of updates from recorded choices alone
_MOMENTS = (32, 16, 8, 6, 4, 3, 2, 1)  # at which shares of all steps it is seen what is reached
_THIRD = 3
_EXPLORING = 0.2  # share of the steps in which epsilon falls, as in super_sac's 200,000 of a million
_QOS, _VALUE, _HOSTS, _TIME, _PRESENT = 1, 0, 2, 3, 7  # numbers of a ready job in the compact observation
_KEYS = {"QoS": (_QOS, -1.0), "HVF": (_VALUE, -1.0), "SJF": (_TIME, 1.0), "FCFS": (_PRESENT, 0.0)}  # the least first


class Learner(NamedTuple):
    """A method and the data that it learns from."""

    method: str
    data: str  # of MIXES; "" for none

    def __str__(self) -> str:
        return f"{self.method}_{self.data}" if self.data else self.method


class Effort(NamedTuple):
    """How much is learned, and by which presets."""

    unit: float  # updates for a thousand of the paper's
    transitions: int  # recorded
    jobs: int  # of an episode, and of a rollout unless it has steps
    presets: Mapping[str, str]  # by method
    changes: tuple[str, ...] = ()  # to all presets
    acting: tuple[str, ...] = ()  # and to those that step environments
    steps: int = 0  # of the world, in a rollout, as the paper has it; 0: it has so many jobs


class _Outcome(NamedTuple):
    """What a learner came to after a share of its steps."""

    done: float  # the share
    share: Floats  # (R,) value that ended over value that was submitted, of each rollout
    early: Floats  # (R,) likewise, after a third of the steps in environments; empty for others
    moments: Floats  # (M, 2) seconds of a processor to learn, nan after an interruption, and the IQM share reached then
    agreement: Floats  # (2,) with who made its data, on other rollouts: of all steps, and of the choices; nan without


def learner_config(learner: Learner, effort: Effort, seed: int) -> TrainConfig:
    """As many updates as the paper has, but for the unit, and with the paper's ratios."""
    steps = round(_UPDATES[learner.method] * effort.unit)
    method = f"learn.method={_ALGORITHMS[learner.method]}"
    changes = [method, f"learn.steps={steps}", "learn.threads=1", f"env.jobs={effort.jobs}", *effort.changes]
    if learner.method in (ONLINE, BOTH):
        before = round(_BEFORE * effort.unit) if learner.method == BOTH else 0
        changes += ["learn.updates=1.0", f"learn.epsilon_steps={round(_EXPLORING * steps)}", f"learn.offline={before}"]
        changes += effort.acting
    return load_config(effort.presets[learner.method], changes, seed=seed)


def record_data(world: GreenWorld, mix: str, effort: Effort, path: Path) -> None:
    """Write what the mix's heuristics choose."""
    config = learner_config(Learner(BC, mix), effort, 0)
    setup = choosing_setup(config, world.workload, world.platform, events=world.events)
    names = MIXES[mix]
    sources, schedules = collect({_POLICIES[name]: 1 / len(names) for name in names}, setup, effort.transitions, 0)
    write_choices(path, schedules, setup, _FACTS, Selection(), sources, 0)


def learn_and_play(
    learner: Learner,
    effort: Effort,
    seed: int,
    learned: GreenWorld,
    tested: GreenWorld,
    rollouts: Sequence[slice],
    data: Path,
    folder: Path,
    begun: Mapping[str, NDArray[Any]],
) -> Iterator[_Outcome]:
    """Learn in one world, and roll out in another.

    Args:
        learner: what learns from what.
        effort: how much.
        seed: of the training.
        learned: world that is learned in.
        tested: world of the rollouts.
        rollouts: (R,) jobs of each.
        data: file of the recorded choices.
        folder: of the training.
        begun: the outcome that it goes on from; empty where there is none.
    """
    config = learner_config(learner, effort, seed)
    known, fresh = data if learner.data else None, not folder.exists()
    early, agreement = begun.get("early", np.empty(0)), np.full(2, np.nan)
    seconds: list[float] = []  # of iterations
    moments = [(np.nan, share) for _, share in begun.get("moments", [])]
    for divisor in _MOMENTS[len(moments) :]:
        steps = max(config.learn.steps // divisor, 1)
        part = replace(config, learn=replace(config.learn, steps=steps))
        log = LogOnHosts(learned.platform, learned.workload, _FACTS, events=learned.events)
        checkpoint = train_to_folder(
            log, part, folder, data=known, resume=True, report=lambda report: seconds.append(report.seconds)
        )
        share = play(checkpoint, tested, rollouts)
        moments.append((sum(seconds) if fresh else np.nan, middle_mean(share)))
        if divisor == _THIRD and learner.method in (ONLINE, BOTH):
            early = share
        if divisor == 1 and learner.data:
            agreement = agreement_with(checkpoint, tested, learner.data, effort.jobs)
        yield _Outcome(1 / divisor, share, early, np.array(moments), agreement)


def play(checkpoint: Path, world: GreenWorld, rollouts: Sequence[slice]) -> Floats:
    """(R,) share of the value of each rollout of a learned policy; those of equally many jobs are played together."""
    found = np.empty(len(rollouts))
    lengths = np.array([stretch.stop - stretch.start for stretch in rollouts])
    for jobs in np.unique(lengths):
        policy, setup = _deployed(checkpoint, world, int(jobs))
        first = np.array([stretch.start for stretch in rollouts])[lengths == jobs]
        found[lengths == jobs] = evaluate(policy.actor.together, setup, first=first)["value_share"]
    return found


def agreement_with(checkpoint: Path, world: GreenWorld, mix: str, jobs: int) -> Floats:
    """(2,) how often a learned policy chooses as a mix of heuristics, where these choose: of all steps, of choices."""
    policy, setup = _deployed(checkpoint, world, jobs)
    found = []
    for name in MIXES[mix]:
        seen, forced = rollouts_of(name, setup)
        mask = seen.mask[seen.choices].astype(np.int8)
        chosen = policy.actor.together(seen.observation[seen.choices], mask)
        found.append(_shares(chosen == seen.action[seen.choices], forced))
    return np.mean(found, axis=0)


def most_agreement(world: GreenWorld, mix: str, effort: Effort) -> Floats:
    """(2,) the most that a function of the observation can agree with a mix, where it does not know who chooses."""
    config = learner_config(Learner(BC, mix), effort, 0)
    setup, found = choosing_setup(config, world.workload, world.platform, events=world.events), []
    for name in MIXES[mix]:
        seen, forced = rollouts_of(name, setup)
        rows = seen.choices
        choices = [heuristic_choices(seen.observation[rows], each, len(world.platform.hosts)) for each in MIXES[mix]]
        counts = np.zeros((len(rows), seen.mask.shape[1]))
        for each in choices:
            counts[np.arange(len(rows)), each] += 1 / len(choices)
        found.append(_shares(counts.max(1), forced))
    return np.mean(found, axis=0)


def heuristic_choices(seen: NDArray[np.float32], name: str, hosts: int) -> NDArray[np.int64]:
    """(n,) what a heuristic does at compact observations (n, D): of the ready jobs that it starts, the first in queue.

    As in recorded choices, which do not say in which order jobs of one instant were started.
    """
    jobs = seen[:, obs.CLUSTER :].reshape(len(seen), -1, obs.COMPACT_FEATURES)
    pool, rows = jobs.shape[1], np.arange(len(seen))
    feature, sign = _KEYS[name]
    key = np.where(jobs[:, :, _PRESENT] > 0, sign * jobs[:, :, feature], np.inf)
    order = np.argsort(key, axis=1, kind="stable")
    free = np.rint(np.minimum(seen[:, 0], seen[:, 1] - seen[:, 2]) * hosts)
    first = np.full(len(seen), pool + 1)
    for at in range(pool):
        slot = order[:, at]
        size = np.rint(jobs[rows, slot, _HOSTS] * hosts)
        starts = (jobs[rows, slot, _PRESENT] > 0) & (size <= free)
        free -= np.where(starts, size, 0.0)
        first = np.where(starts & (slot < first), slot, first)
    return first


def rollouts_of(name: str, setup: Setup) -> tuple[Demonstrations, int]:
    """Recorded choices of a heuristic, and at how many steps there was nothing to choose."""
    schedules = record_schedules(_POLICIES[name], setup, _MEASURED, 1)
    seen = replay_schedules(setup, schedules)
    submit, steps = setup.trace.truth.submit_time, 0
    for schedule in schedules:
        begin = submit[schedule.first]
        end = np.max(schedule.start, initial=begin, where=np.isfinite(schedule.start))
        steps += int((end - begin) / WORLD_STEP) + 1
    ended = int(np.count_nonzero(seen.action == seen.mask.shape[1] - 1))  # each step ends with a no_op
    return seen, max(steps - ended, 0)


def _shares(agreed: NDArray[np.generic], forced: int) -> Floats:
    total = float(np.sum(agreed))
    return np.array([(total + forced) / (len(agreed) + forced), total / len(agreed)])


_MEASURED = 4000  # transitions of each heuristic
_FACTS = (InputFacts(name="green", sha256=""), InputFacts(name="green", sha256=""))


def _deployed(checkpoint: Path, world: GreenWorld, jobs: int) -> tuple[LearnedPolicy, Setup]:
    policy = learned_policy(checkpoint)
    assert isinstance(policy, LearnedPolicy)
    policy.actor.reset(0)
    setup = make_setup(world.workload, world.platform, encoder=policy.encoder, jobs=jobs, events=world.events)
    return policy, setup


# Budgets, and the parts that they are made of.


class _Budget(NamedTuple):
    """How many learners, seeds and rollouts a budget of the command line means."""

    learners: Mapping[int, tuple[Learner, ...]]  # by hosts
    seeds: int
    rollouts: int  # of each seed
    effort: Effort
    intermittent: bool = True  # power
    learned_jobs: int = 20_000  # of the world that is learned in
    samples: int = 1000  # of the bootstrap
    battery: float = 0.0  # hours for which it can power all hosts


_ALL = (
    *(Learner(method, mix) for method in (BC, OFFLINE) for mix in MIXES),
    Learner(ONLINE, ""),
    *(Learner(BOTH, mix) for mix in MIXES),
)
_THREE = (Learner(BC, "qos"), Learner(OFFLINE, "combo"), Learner(ONLINE, ""))
_STANDARD = {
    10: _ALL,
    30: _THREE,
    50: (*_THREE, Learner(BC, "combo")),
    100: (Learner(BC, "qos"), Learner(OFFLINE, "combo"), Learner(BOTH, "qos")),
}
_PRESETS = {BC: "green-bc", OFFLINE: "green-crr", ONLINE: "green-sac", BOTH: "green-offline-online"}
_EFFORT = Effort(unit=16, transitions=100_000, jobs=1000, presets=_PRESETS)
_SMOKE = Effort(0.1, 800, 40, _PRESETS, ("learn.batch=32",), ("learn.envs=2", "learn.warmup=64"))
_PAIRS = ((BC, "qos"), (BC, "combo"), (OFFLINE, "combo"), (ONLINE, ""), (BOTH, "qos"))
_FEW = tuple(Learner(method, data) for method, data in _PAIRS)
_SIZES = (10, 20, 30, 40, 50, 100)
_PAPERS_AGENT = "green-paper"  # with the image, the convolutions, one encoder
_PAPER = Effort(1000, 200_000, 1000, dict.fromkeys(_PRESETS, _PAPERS_AGENT), steps=100_000)
_BATTERY = 4.0  # hours
_CLONED = Learner(BC, "qos"), Learner(OFFLINE, "combo")
_BUDGETS = {
    "smoke": _Budget({10: _FEW}, 1, 2, _SMOKE, learned_jobs=400, samples=20),
    "standard": _Budget(_STANDARD, 5, 10, _EFFORT),
    "steady": _Budget(_STANDARD, 5, 10, _EFFORT, intermittent=False),
    "battery": _Budget(_STANDARD, 5, 10, _EFFORT, battery=_BATTERY),
    "violations": _Budget(_STANDARD, 5, 10, _EFFORT._replace(changes=("env.violation_cost=1.0",))),
    "first": _Budget({10: _CLONED}, 3, 10, _PAPER),
    "full": _Budget(dict.fromkeys(_SIZES, _ALL), 5, 10, _PAPER),
}
_RULES, _POSSIBLE = "rules", "possible"


class LaunchpadPart(Part, frozen=True, kw_only=True):
    """What somebody gets, or what is learned, with so many hosts."""

    experiment = "launchpad"

    budget: _Budget
    hosts: int
    contender: Learner | str  # or RULES, or POSSIBLE

    def definition(self) -> dict[str, Any]:
        """All that its result depends on: not on who else learns, and how often."""
        budget = {name: value for name, value in self.budget._asdict().items() if name not in ("learners", "seeds")}
        return {"experiment": "launchpad", "hosts": self.hosts, "who": self.contender, "number": self.seed, **budget}

    @property
    def file(self) -> Path:
        """The file of its numbers, arrays by name."""
        return self.folder / f"{self.hosts}-{self.contender}-{self.seed}.npz"

    @property
    def begun(self) -> Path:
        """The file of what a learner came to so far, until it is finished."""
        return self.file.with_name(f"{self.file.stem}-begun.npz")

    @property
    def newest(self) -> Path:
        """The file of its numbers or, until it is finished, of those so far."""
        return self.begun if self.begun.exists() else self.file


def _parts_of(budget: _Budget, folder: Path) -> list[LaunchpadPart]:
    """Whole seeds first, so that an interrupted run compares all with all."""
    smallest = min(budget.learners)

    def task(hosts: int, contender: Learner | str, seed: int) -> LaunchpadPart:
        return LaunchpadPart(budget=budget, hosts=hosts, contender=contender, seed=seed, folder=folder)

    tasks = [task(hosts, _RULES, seed) for seed in range(budget.seeds) for hosts in budget.learners]
    tasks.append(task(smallest, _POSSIBLE, 0))
    for seed in range(budget.seeds):
        tasks += [task(hosts, learner, seed) for hosts, some in budget.learners.items() for learner in some]
    return tasks


def _do_part(task: LaunchpadPart) -> None:
    """Play heuristics, or learn and play."""
    budget, effort, learner = task.budget, task.budget.effort, task.contender
    if isinstance(learner, Learner):
        learned = world(task.hosts, budget.intermittent, LEARNED_WORLD, budget.learned_jobs, budget.battery)
        data = task.folder / f"{task.hosts}-{learner.data}.choices"
        if learner.data and not data.exists():
            record_data(learned, learner.data, effort, data)
        tested = _tested(task)
        rollouts = rollout_jobs(tested, budget.rollouts, effort.jobs, effort.steps)
        folder = training_folder(task)
        found = dict(np.load(task.begun)) if task.begun.exists() and folder.exists() else {}
        for outcome in learn_and_play(learner, effort, task.seed, learned, tested, rollouts, data, folder, found):
            found = {name: np.asarray(value) for name, value in outcome._asdict().items()}
            write_arrays(task.begun, found)
    elif task.contender == _POSSIBLE:
        mixes = PUBLISHED_AGREEMENT[BC]
        found = {mix: most_agreement(_tested(task), mix, effort) for mix in mixes}
    else:
        tested = _tested(task)
        rollouts = rollout_jobs(tested, budget.rollouts, effort.jobs, effort.steps)
        found = {name: heuristic_shares(tested, rule, rollouts) for name, rule in claims.RULES.items()}
        # of a rollout of 70,000 jobs the bound takes hours: that of its first jobs is the bound of shorter ones
        found[BOUND] = bound_shares(tested, [slice(each.start, each.start + effort.jobs) for each in rollouts])
    write_arrays(task.file, found)
    task.begun.unlink(missing_ok=True)


def _tested(task: LaunchpadPart) -> GreenWorld:
    """The world of the rollouts of a seed."""
    effort, rollouts = task.budget.effort, task.budget.rollouts
    jobs = rollouts * effort.jobs if not effort.steps else jobs_in(task.hosts, rollouts * effort.steps)
    return world(task.hosts, task.budget.intermittent, LEARNED_WORLD + 1 + task.seed, jobs, task.budget.battery)


def results_of(parts: Sequence[LaunchpadPart], budget: _Budget) -> claims.Results:
    """The numbers of parts that are finished, and of learners what they came to so far."""
    smallest = min(budget.learners)
    presets = list(dict.fromkeys(budget.effort.presets.values()))
    read = [(task, dict(np.load(task.newest))) for task in parts]
    share = budget.effort.unit / _PAPER.unit * min((_share_done(numbers) for _, numbers in read), default=1.0)
    agent = PaperAgent(", ".join(presets), presets == [_PAPERS_AGENT], share)
    found = claims.Results({}, {}, {}, {}, {}, budget.samples, agent)
    for task, numbers in read:
        if task.contender == _POSSIBLE:
            found.possible.update(numbers)
        elif task.contender == _RULES:
            for name, shares in numbers.items():
                _put(found.values, task.hosts, name, task.seed, shares)
        else:
            name = str(task.contender)
            _put(found.values, task.hosts, name, task.seed, numbers["share"])
            if len(numbers["early"]):
                _put(found.early, task.hosts, name, task.seed, numbers["early"])
            if task.hosts == smallest and _share_done(numbers) == 1:
                found.moments.setdefault(name, {})[task.seed] = numbers["moments"]
                found.agreement.setdefault(name, {})[task.seed] = numbers["agreement"]
    return found


def _share_done(numbers: Mapping[str, NDArray[Any]]) -> float:
    """How much of a part its numbers are of."""
    return float(numbers.get("done", 1.0))


def _put(values: claims.Values, hosts: int, name: str, seed: int, shares: NDArray[np.float64]) -> None:
    values.setdefault(hosts, {}).setdefault(name, {})[seed] = shares


_PRICES = {  # updates in a second at 10 hosts: of one core, and of one H200 where that was measured
    BC: TrainingHours(5e5, 82.0, 0.0),
    OFFLINE: TrainingHours(5e5, 43.0, 0.0),
    ONLINE: TrainingHours(1e6, 46.5, 75.0),
    BOTH: TrainingHours(1.05e6, 46.5, 75.0),
}


def _left(asked: Asked[_Budget, LaunchpadPart]) -> str:
    """What the paper's own trainings at 10 hosts take; larger datacenters have as many times the image."""
    full, own = _BUDGETS["full"], set(asked.budget.effort.presets.values()) == {_PAPERS_AGENT}
    left = {learner: float(full.seeds) for learner in full.learners[10]}
    for part in asked.wanted if own else ():
        if part.hosts == 10 and isinstance(part.contender, Learner) and part.newest.exists():
            left[part.contender] -= _share_done(np.load(part.newest))
    return price_line([(_PRICES[each.method], number) for each, number in left.items()]) + ", at 10 hosts"


def _show(asked: Asked[_Budget, LaunchpadPart]) -> Shown:
    """Tables, and figures 3 to 8 with their numbers; nothing until there are heuristics to compare with."""
    if not any(task.contender == _RULES for task in asked.done):
        return Shown(())
    found = results_of([part for part in asked.wanted if part.newest.exists()], asked.budget)
    made = [claims.value_table, claims.claim_table]
    if found.moments:
        made += [claims.agreement_table, claims.fit_table, claims.time_table]
    from decision.report.plots.figures import drawn

    from .figures import value_bars

    files: dict[str, bytes] = {}
    for number in claims.FIGURES:
        values = claims.figure_values(found, number)
        if any(values.values()):
            files[f"figure-{number}.csv"] = claims.figure_csv(values)
            files[f"figure-{number}.svg"] = drawn(value_bars(claims.figure_title(found, number), values), ".svg")
    return Shown(tuple(make(found) for make in made), files)


LAUNCHPAD = Campaign(
    _BUDGETS,
    _parts_of,
    _do_part,
    _show,
    few=lambda budget: f"short trainings and rollouts ({budget.effort.jobs} jobs)",
    price=_left,
)

# Launchpad (Venkataswamy et al., JSSPP 2024): a green datacenter, learned from heuristics' choices and online.
