"""The policy ``slurm``: the model decides in a run of ``decision run``, ``compare`` or ``serve``.

``slurm,conf=CASE/slurm.conf,bf_interval=120`` knows of each job of the case what the log says of it: partition, QOS,
memory, dependencies. Any other job asks for its hosts in the default partition. A host of the platform is a node, or a
core of one where jobs share nodes: ``decision slurm read`` writes such a platform.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from decision.model.dates import DAY
from decision.model.errors import ConfigError, PolicyError, warn_once
from decision.model.platform import Platform
from decision.policies.loading import PolicySource
from decision.policies.options import OptionLine, PolicyLine
from decision.policies.policy import Plan
from decision.slurm.kernels import clock
from decision.slurm.kernels.allocate import end_job
from decision.slurm.kernels.world import FAR, SlurmWorld
from decision.state.view import ClusterView, JobView

from .build import build_world, zero_of
from .case import CASE_FILE, VERSION, Case, engine_hosts, load_case, read_topology
from .conf import MODEL, PARAMETERS, Settings, read_conf
from .jobs import SlurmJob
from .keys import count_keys
from .nodes import make_nodes, make_partitions

# the world's arrays cannot grow: a new one with twice as many places takes over
_ROOM = 1024  # jobs that no case knows, at first
_SOURCE = "slurm.conf(5)"
_STRANGER = "-"  # id of a place for such a job


class SlurmPolicy:
    """Slurm's main loop and backfill, as its configuration says.

    Args:
        conf: a slurm.conf, best that of a case.
        changes: parameters in place of its own.

    Raises:
        ConfigError: for a parameter that there is not, or a file that cannot be read.
    """

    def __init__(self, conf: Path, changes: Mapping[str, str]) -> None:
        if (conf.parent / CASE_FILE).is_file():
            self._case = load_case(conf.parent)
            found = read_conf(conf)
        else:
            # a cluster without a log
            found = read_conf(conf)
            nodes = make_nodes(found, None, ())
            partitions = make_partitions(found, None, nodes)
            switches = read_topology(found, None, nodes).switches
            self._case = Case(
                version=VERSION,
                switches=tuple(switches),
                nodes=tuple(nodes),
                partitions=tuple(partitions),
                jobs=(),
                keys=count_keys(found, bool(switches)),
                linear=Settings(found).linear,
            )
        self._settings = Settings(self._case.known_of(found)).changing(changes)
        self._known = {job.id: number for number, job in enumerate(self._case.jobs)}
        self._strangers = 0
        self._world: SlurmWorld
        self._hosts: dict[int, list[int]] = {}  # engine's hosts of each node
        self._numbers: dict[int, int] = {}  # engine's number of each of the world's jobs
        self._seen = 0
        self._zero = 0

    def reset(self, platform: Platform, seed: int) -> None:
        """A run begins: nothing has been submitted.

        Raises:
            ConfigError: if there are other hosts than nodes or cores.
        """
        del seed  # nothing is drawn
        case = self._case
        numbers = {node.name: number for number, node in enumerate(case.nodes)}
        # the platform that `write_case` made says it; others of the right size are taken in order
        named = [host.properties.get("server", host.name) for host in platform.hosts]
        if not all(name in numbers for name in named):
            named = engine_hosts(case)
        if len(named) != len(platform.hosts):
            units = f"{len(case.nodes)} nodes" if case.linear else f"{len(named)} cores"
            raise ConfigError(
                f"policy slurm: slurm.conf has {units}, and the platform {len(platform.hosts)} hosts; "
                "take the platform that decision slurm read wrote"
            )
        self._hosts = {number: [] for number in numbers.values()}
        for host, name in enumerate(named):
            self._hosts[numbers[name]].append(host)
        self._numbers, self._seen, self._strangers = {}, 0, _ROOM
        self._zero = self._case.begin - zero_of(self._with_strangers())
        self._world = self._new_world()

    def _with_strangers(self) -> Case:
        """The case, and places for jobs that it does not know."""
        begin = self._case.begin
        default = next((p for p in self._case.partitions if p.default), self._case.partitions[0])
        place = SlurmJob(id=_STRANGER, submit=begin, state="PENDING", partition=default.name)
        most = len(self._case.nodes)
        place = msgspec.structs.replace(place, cpus=sum(node.cores * node.threads for node in self._case.nodes))
        place = msgspec.structs.replace(place, nodes=most if self._case.linear else 1)
        return msgspec.structs.replace(self._case, jobs=(*self._case.jobs, *[place] * self._strangers))

    def _new_world(self) -> SlurmWorld:
        world = build_world(self._with_strangers(), self._settings)
        world.runtime[:] = world.cancel[:] = FAR
        world.recorded[:] = -1
        if world.preempts_by:
            warn_once("policy slurm: no job is preempted in a run, because a job cannot be requeued there")
            world.preempts_by = 0
        clock.begin_log(world)
        return world

    def decide(self, cluster: ClusterView, plan: Plan) -> None:
        """Tell the model what happened, let it act, and do what it decided."""
        now = self._zero + int(cluster.now)
        # jobs that run no more end in the order in which they started
        still = {job.number for job in cluster.running}
        world = self._world
        for number in world.running[: world.nb_running].tolist():
            if self._numbers[number] not in still:
                end_job(world, number, now)
        for place in range(self._seen, cluster.arrays.nb_jobs):
            job = cluster.job(place)
            # Batsim's ids are WORKLOAD!ID; a second job with the id of one that is there already is a stranger
            known = self._known.get(job.id.rpartition("!")[2])
            number = self._place_for(job) if known is None or known in self._numbers else known
            self._numbers[number] = job.number
            self._world.submit[number] = now
            clock.submit_job(self._world, number, now)
        self._seen = cluster.arrays.nb_jobs
        world = self._world
        clock.step_scheduler(world, now)
        for number in world.started[: world.nb_started].tolist():
            self._start(number, cluster, plan)
        due = int(clock.due(world))
        if due < FAR:
            plan.call_at(due - self._zero)

    def _place_for(self, job: JobView) -> int:
        """A place in the world for a job that the case does not know."""
        used = sum(number >= len(self._case.jobs) for number in self._numbers)
        if used == self._strangers:
            # a world with twice as many places; what was known stays
            old = self._world
            self._strangers *= 2
            self._world = self._new_world()
            for name, before in old.arrays().items():
                self._world.arrays()[name][tuple(map(slice, before.shape))] = before
        number, world = len(self._case.jobs) + used, self._world
        linear = self._case.linear
        # a stranger asks for cores on any number of nodes, with the default memory
        world.nodes_min[number] = job.size if linear else 1
        world.nodes_max[number] = job.size if linear else len(self._case.nodes)
        world.cores[number] = job.size
        world.limit[number] = int(min(job.walltime, 365 * DAY))
        world.user[number] = max(0, job.user) % len(world.seen_user)
        return number

    def _start(self, job: int, cluster: ClusterView, plan: Plan) -> None:
        world, free = self._world, set(plan.free_hosts)
        view = cluster.job(self._numbers[job])
        begin = world.alloc_begin[job]
        hosts: list[int] = []
        for i in range(begin, begin + world.alloc_count[job]):
            node, cores = int(world.alloc_node[i]), int(world.alloc_cores[i])
            hosts += [host for host in self._hosts[node] if host in free][:cores]
        if len(hosts) < view.size:
            raise PolicyError(
                f"t={cluster.now:.12g} s: {view.id} asks for {view.size} hosts, and Slurm gives it {len(hosts)}; "
                "take the workload that decision slurm read wrote"
            )
        plan.start(view, hosts[: view.size])


def load_slurm_policy(name: str, options: Mapping[str, Any]) -> SlurmPolicy:
    """The policy of ``slurm,conf=FILE,...``.

    Raises:
        ConfigError: if there is no conf, or a parameter that there is not.
    """
    given = dict(options)
    conf = given.pop("conf", None)
    if conf is None:
        raise ConfigError(f"policy {name} needs the option conf: slurm,conf=CASE/slurm.conf")
    return SlurmPolicy(Path(str(conf)), {key: str(value) for key, value in given.items()})


def _options(_name: str) -> list[OptionLine]:
    lines = [OptionLine("conf", "", "", "slurm.conf of a case, or any other")]
    return lines + [
        OptionLine(each.name, each.default or "none", each.unit, each.summary, _SOURCE if each not in MODEL else "")
        for each in PARAMETERS.values()
    ]


SLURM = PolicySource(
    names=("slurm",),
    load=load_slurm_policy,
    lines=lambda: [PolicyLine("slurm", "Slurm's main loop and backfill: slurm,conf=CASE/slurm.conf", "Slurm")],
    options=_options,
)
