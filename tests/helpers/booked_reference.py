"""Bound starts in plain Python, step by step as their rules are told; a policy like a user's."""

from decision.model.platform import Platform
from decision.model.record import HostState
from decision.policies import Plan
from decision.state.view import ClusterView, JobView

CLOSE = 1e-3  # seconds: what is due within it is due
KEYS = {
    "fcfs": lambda job: job.number,
    "sjf": lambda job: (job.walltime, job.number),
    "saf": lambda job: (job.walltime * job.size, job.number),
}


class BoundTwin:
    """first-fit, easy or none, in three orders, with or without packing and patience."""

    needs_walltime = True

    def __init__(self, order: str, backfill: str, packs: bool, patience: float, timeout: float) -> None:
        self.order, self.backfill, self.packs = order, backfill, packs
        self.patience, self.timeout = patience, timeout

    def reset(self, platform: Platform, seed: int) -> None:
        self.server = [name or host for host, name in enumerate(platform.servers)]
        self.wake, self.doze = 20.0, 5.0
        self.booked: dict[int, list[int]] = {}  # hosts by number of the job

    def decide(self, cluster: ClusterView, plan: Plan) -> None:
        self.now, self.state = cluster.now, [HostState(int(s)) for s in cluster.arrays.host_state]
        self.since, free = cluster.arrays.host_since.tolist(), set(plan.free_hosts)
        self.can_sleep = [bool(p >= 0) for p in cluster.facts.sleep_pstate]
        waiting = {job.number for job in cluster.queue}
        self.booked = {job: hosts for job, hosts in self.booked.items() if job in waiting}
        for job, hosts in self.booked.items():
            if set(hosts) <= free:
                plan.start(job, hosts)
        self.taken = {host for hosts in self.booked.values() for host in hosts}
        self.free = free
        self.dozing = {host for server in self._servers() if self._due(server) <= self.now + CLOSE for host in server}
        if self.dozing:
            plan.sleep(sorted(self.dozing))
        self.woken_by = {self.server[host] for host in self.taken}
        call = self._choose(cluster, plan)
        wakes = {self.server[h] for h in self.taken if self.state[h] is HostState.SLEEPING}
        asleep = [h for h, s in enumerate(self.state) if s is HostState.SLEEPING and self.server[h] in wakes]
        plan.wake(asleep)
        call = min([call, *map(self._due, self._servers())])
        if self.now < call < float("inf"):
            plan.call_at(call)

    def _servers(self) -> list[list[int]]:
        names = dict.fromkeys(self.server)
        return [[h for h, name in enumerate(self.server) if name == wanted] for wanted in names]

    def _due(self, server: list[int]) -> float:
        idle = all(h in self.free and h not in self.taken and self.can_sleep[h] for h in server)
        if not idle or set(server) <= getattr(self, "dozing", set()):
            return float("inf")
        return max(self.since[h] for h in server) + self.timeout

    def _rank(self, host: int) -> int:
        if host in self.free:
            return 3 if host in self.dozing else 0
        ranks = {HostState.SWITCHING_ON: 1, HostState.SLEEPING: 2, HostState.SWITCHING_OFF: 3}
        return ranks.get(self.state[host], -1)

    def _hosts_for(self, job: JobView) -> list[int] | None:
        patient = job.submit_time + self.patience <= self.now + CLOSE
        hosts = [h for h in range(len(self.server)) if h not in self.taken and self._rank(h) >= 0]
        if not patient:
            hosts = [h for h in hosts if self._rank(h) <= 1 or self.server[h] in self.woken_by]
        awake = {}
        for host in hosts:
            if self._rank(host) == 0:
                awake[self.server[host]] = awake.get(self.server[host], 0) + 1
        first = list(dict.fromkeys(self.server))

        def key(host: int) -> tuple[int, ...]:
            if self.packs and self._rank(host) == 0:
                return (0, awake[self.server[host]], first.index(self.server[host]), host)
            return (self._rank(host), host)

        return sorted(sorted(hosts, key=key)[: job.size]) if len(hosts) >= job.size else None

    def _available(self) -> int:
        return sum(h not in self.taken and self._rank(h) >= 0 for h in range(len(self.server)))

    def _ready(self, host: int) -> float:
        since = self.since[host]
        match self._rank(host):
            case 0:
                return self.now
            case 1:
                return max(since + self.wake, self.now + CLOSE)
            case 2:
                return self.now + self.wake
        doze = self.now + self.doze if host in self.free else max(self.now, since + self.doze)
        return doze + self.wake

    def _choose(self, cluster: ClusterView, plan: Plan) -> float:
        call, head = float("inf"), None
        for job in sorted(cluster.queue, key=KEYS[self.order]):
            if job.number in self.booked:
                continue
            if head is not None and self.backfill == "none":
                break
            hosts, available = self._hosts_for(job), self._available()
            if available == 0:
                break
            if hosts and (head is None or self.backfill != "easy" or self._harmless(job, hosts)):
                self.booked[job.number] = hosts
                self.taken |= set(hosts)
                self.woken_by |= {self.server[h] for h in hosts}
                if all(self._rank(h) == 0 for h in hosts):
                    plan.start(job, hosts)
                continue
            if hosts:
                continue
            if job.size <= available:
                call = min(call, job.submit_time + self.patience)
            if head is None:
                head = job
                self.shadow, self.extra = self._reserve(cluster, job, available)
        return call

    def _harmless(self, job: JobView, hosts: list[int]) -> bool:
        if max(map(self._ready, hosts)) + job.walltime <= self.shadow:
            return True
        if job.size > self.extra:
            return False
        self.extra -= job.size
        return True

    def _reserve(self, cluster: ClusterView, head: JobView, available: int) -> tuple[float, int]:
        if head.size <= available:
            return head.submit_time + self.patience, available - head.size
        ends = [(job.expected_end, job.size) for job in cluster.running]
        walltime = {job.number: job.walltime for job in cluster.queue}
        ends += [(max(map(self._ready, hosts)) + walltime[job], len(hosts)) for job, hosts in self.booked.items()]
        free, shadow = available, float("inf")
        for time, hosts in sorted(ends):
            if time > shadow:
                break
            free += hosts
            if free >= head.size:
                shadow = time
        return shadow, max(free - head.size, 0)
