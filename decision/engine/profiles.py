"""What a profile makes a job do: its leaf tasks one after the other, and what the engines refuse to simulate."""

from collections.abc import Iterator, Sequence
from enum import IntEnum

import msgspec

from decision.model.errors import ConfigError
from decision.model.workload import (
    Composed,
    Delay,
    Foreign,
    Job,
    Parallel,
    ParallelHomogeneous,
    ParallelHomogeneousTotal,
    Profile,
    Workload,
)

from .refusals import ADVICE

MAX_LEAVES = 100_000


class LeafKind(IntEnum):
    """What a leaf task's amount means."""

    DELAY = 0  # seconds
    FLOPS_EACH = 1  # flop per executor
    FLOPS_TOTAL = 2  # flop in all, spread evenly over the executors
    FLOPS_VECTOR = 3  # one amount per executor


class LeafTask(msgspec.Struct, frozen=True):
    """A task without parts. An executor is a host of the job, or what a mapping puts there."""

    profile: str  # the leaf's own profile
    kind: LeafKind
    amount: float  # seconds or flop, by kind; 0 where `flops` says it
    flops: tuple[float, ...] = ()  # (n,) flop per executor, with FLOPS_VECTOR only
    exit_code: int = 0  # once the leaf is over: 0 goes on to the next leaf, anything else ends the job
    path: tuple[tuple[str, int], ...] = ()  # enclosing composed profiles, outermost first, and which of their tasks
    sent: float = 0.0  # byte from each executor to each other; in all with FLOPS_TOTAL; the most with FLOPS_VECTOR
    matrix: tuple[float, ...] = ()  # (n * n,) byte from each executor to each, with FLOPS_VECTOR that sends only


def flatten(name: str, workload: Workload, no_network: str = "") -> tuple[LeafTask, ...]:
    """The leaf tasks of a profile in the order in which they run.

    `no_network` says why they cannot communicate, where they cannot (`decision.engine.refusals.network_refusal`).

    A composed profile ends with its first task whose exit code is not 0, so the leaves after such a task are
    left out, and the last leaf has the exit code of the whole.

    Raises:
        ConfigError: if the engines cannot simulate the profile; one line that names it.
    """
    leaves: list[LeafTask] = []
    for leaf in _leaves(name, workload, ()):
        if leaf.sent > 0 and no_network:
            reason = f"communication (com = {leaf.sent:g} bytes), but {no_network}; {ADVICE}"
            raise _refusal(leaf.profile, workload, reason)
        leaves.append(leaf)
        if len(leaves) > MAX_LEAVES:
            raise _refusal(name, workload, f"more than {MAX_LEAVES:,} tasks once unrolled; lower 'repeat'")
        if leaf.exit_code != 0:
            break
    return tuple(leaves)


def _leaves(name: str, workload: Workload, path: tuple[tuple[str, int], ...]) -> Iterator[LeafTask]:
    if any(name == outer for outer, _ in path):
        raise ConfigError(f"{_place(workload)}: profile {name!r} contains itself; break the cycle")
    profile = _profile(name, workload)
    if profile.exit_code < -1:
        raise _refusal(name, workload, f"exit code {profile.exit_code}; Batsim takes no code below -1")
    if not isinstance(profile, Composed):
        yield _leaf(name, profile, workload, path)
        return
    parts = profile.repeat * len(profile.sequence)
    for index in range(parts):
        part = profile.sequence[index % len(profile.sequence)]
        within = _leaves(part, workload, (*path, (name, index)))
        yield from _with_last_code(within, profile.exit_code) if index == parts - 1 else within


def _with_last_code(leaves: Iterator[LeafTask], code: int) -> Iterator[LeafTask]:
    """The same leaves; the last one also gives the exit code of the composed profile that ends with it."""
    last = next(leaves)
    for leaf in leaves:
        yield last
        last = leaf
    yield last if last.exit_code else msgspec.structs.replace(last, exit_code=code)


def _leaf(name: str, profile: Profile, workload: Workload, path: tuple[tuple[str, int], ...]) -> LeafTask:
    if isinstance(profile, Foreign):
        reason = f"type {profile.type!r}, which the embedded engine cannot simulate; {ADVICE}"
        raise _refusal(name, workload, reason)
    kind, amount, flops, sent = _work(profile)
    matrix = profile.bytes if isinstance(profile, Parallel) and sent > 0 else ()
    return LeafTask(name, kind, amount, flops, profile.exit_code, path, sent, matrix)


def _work(profile: Profile) -> tuple[LeafKind, float, tuple[float, ...], float]:
    """Kind, amount, flop per executor and bytes of a profile without parts."""
    match profile:
        case Delay():
            return LeafKind.DELAY, profile.duration, (), 0.0
        case ParallelHomogeneous():
            return LeafKind.FLOPS_EACH, profile.flops, (), profile.bytes
        case ParallelHomogeneousTotal():
            return LeafKind.FLOPS_TOTAL, profile.flops, (), profile.bytes
        case Parallel():
            alone = len(profile.flops) == 1  # SimGrid computes on one host without looking at what it sends
            return LeafKind.FLOPS_VECTOR, 0.0, profile.flops, 0.0 if alone else max(profile.bytes, default=0.0)
    raise TypeError(f"{type(profile).__name__} has parts")


def _profile(name: str, workload: Workload) -> Profile:
    if name not in workload.profiles:
        raise ConfigError(f"{_place(workload)}: there is no profile {name!r}; add it")
    return workload.profiles[name]


def _refusal(name: str, workload: Workload, reason: str) -> ConfigError:
    return ConfigError(f"{_place(workload)}: profile {name!r} has {reason}")


def _place(workload: Workload) -> str:
    return workload.path or workload.name


def is_moldable(name: str, workload: Workload) -> bool:
    """Whether a job of this profile may get another number of hosts than it requested.

    Batsim allows it for `ParallelHomogeneousTotal` and for a composed profile whose parts all are of that kind.
    """
    profile = workload.profiles[name]
    parts = [workload.profiles[part] for part in profile.sequence] if isinstance(profile, Composed) else [profile]
    return all(isinstance(part, ParallelHomogeneousTotal) for part in parts)


def check_width(job: Job, leaves: tuple[LeafTask, ...], workload: Workload) -> None:
    """Refuse a job whose profile gives amounts for another number of hosts than it requests.

    Raises:
        ConfigError: one line that names job, profile and both numbers.
    """
    for leaf in leaves:
        if leaf.kind is LeafKind.FLOPS_VECTOR and len(leaf.flops) != job.size:
            reason = f"amounts for {len(leaf.flops)} hosts, but job {job.id} requests {job.size}; make them equal"
            raise _refusal(leaf.profile, workload, reason)


def on_hosts(leaf: LeafTask, places: Sequence[int], nb_hosts: int) -> LeafTask:
    """The leaf with one amount per allocated host: the sum of what its executors compute there.

    `places` gives each executor the index of its host.
    """
    if leaf.kind is LeafKind.DELAY:
        return leaf
    flops, matrix = [0.0] * nb_hosts, [0.0] * nb_hosts**2
    for place, amount in zip(places, amounts(leaf, len(places)), strict=True):
        flops[place] += amount
    for sender, receiver, sent in sendings(leaf, len(places)):
        matrix[places[sender] * nb_hosts + places[receiver]] += sent
    return msgspec.structs.replace(
        leaf,
        kind=LeafKind.FLOPS_VECTOR,
        amount=0.0,
        flops=tuple(flops),
        sent=max(matrix),
        matrix=tuple(matrix) if max(matrix) > 0 else (),
    )


def amounts(leaf: LeafTask, executors: int) -> Sequence[float]:
    """Flop (executors,) that each executor computes."""
    if leaf.kind is LeafKind.FLOPS_VECTOR:
        return leaf.flops
    return [leaf.amount / executors if leaf.kind is LeafKind.FLOPS_TOTAL else leaf.amount] * executors


def sendings(leaf: LeafTask, executors: int) -> Iterator[tuple[int, int, float]]:
    """Who sends to whom how many bytes, where there are any: sender by sender, as SimGrid adds them up."""
    if leaf.kind is LeafKind.FLOPS_VECTOR:
        pairs = ((*divmod(at, executors), sent) for at, sent in enumerate(leaf.matrix))
    else:
        sent = leaf.sent / executors if leaf.kind is LeafKind.FLOPS_TOTAL else leaf.sent
        pairs = ((i, j, sent) for i in range(executors) for j in range(executors) if i != j)
    return (pair for pair in pairs if pair[2] > 0)
