"""GridGym's SchedulingEnv (https://github.com/lccasagrande/GridGym), on `d.Simulation` in place of batsim-py.

Needs gymnasium. Jobs may be given hosts that sleep, which then wake up; hosts that idle for `t_shutdown` seconds are
switched off. `engine="batsim"` runs it in an external Batsim.
"""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

import decision as d
from decision.model.record import HostState


class SchedulingEnv(gymnasium.Env):
    """Action k > 0 gives the k-th job of the queue hosts; 0, or one that does not fit, lets `t_action` seconds pass."""

    def __init__(self, platform, workload, t_action=1, t_shutdown=5, queue_max_len=20, **options: Any) -> None:
        self.case, self.options = (platform, workload), {"energy": True, **options}
        self.t_action, self.t_shutdown, self.slots = t_action, t_shutdown, queue_max_len
        hosts, inf = len(d.load_platform(platform).hosts), np.inf
        self.action_space = spaces.Discrete(queue_max_len + 1)
        self.observation_space = spaces.Dict(
            {
                "jobs": spaces.Box(-1, inf, (queue_max_len, 4)),  # submission, hosts, walltime, user
                "status": spaces.Box(0, len(HostState), (hosts,)),
                "agenda": spaces.Box(-1, inf, (hosts, 3)),  # start, walltime and user of the job on each host
                "time": spaces.Box(0, inf, (1,)),
            }
        )

    def reset(self, *, seed=None, options=None):
        """A new simulation, up to its first instant."""
        super().reset(seed=seed)
        self.sim = d.Simulation(*self.case, **self.options)
        self.reserved: dict[int, list[int]] = {}  # hosts of jobs that wait for some of them to wake up
        self.sim.on("host_changed", self._host_changed)
        for host in self.sim.view.hosts_that(HostState.IDLE):
            self._host_changed(self.sim, host)
        return self._state(), {}

    def step(self, action):
        """Give a job hosts, or let time pass; what passes is paid for by GridGym's reward."""
        queue, taken = self._queue(), {host for hosts in self.reserved.values() for host in hosts}
        view, reward, scheduled = self.sim.view, 0.0, False
        if 0 < action <= len(queue):
            asleep = set(view.hosts_that(HostState.SLEEPING))
            usable = [host for host in range(view.nb_hosts) if host in asleep.union(view.free_hosts) - taken]
            if scheduled := queue[action - 1].size <= len(usable):
                self.reserved[queue[action - 1].number] = usable[: queue[action - 1].size]
                if wake := sorted(asleep.intersection(usable[: queue[action - 1].size])):
                    self.sim.switch_on(wake)
                self._start_reserved()
        if not scheduled:
            reward, until = self._reward(), _in_seconds(self.sim, self.t_action)
            while not self.sim.is_over and self.sim.now < until:
                self.sim.run_until(until)
                self._start_reserved()
        return self._state(), reward, self.sim.is_over, False, {}

    def _queue(self) -> list[d.JobView]:
        return [job for job in self.sim.view.queue if job.number not in self.reserved][: self.slots]

    def _start_reserved(self) -> None:
        free = set(self.sim.view.free_hosts)
        for job, hosts in list(self.reserved.items()):
            if not self.sim.is_over and free.issuperset(hosts):
                self.sim.start(job, self.reserved.pop(job))

    def _host_changed(self, sim, host) -> None:
        if sim.view.host_state(host) == HostState.IDLE:
            since = sim.now
            sim.at(_in_seconds(sim, self.t_shutdown), lambda sim: self._shut_down(sim, host, since))

    def _shut_down(self, sim, host, since) -> None:
        taken = any(host in hosts for hosts in self.reserved.values())
        if host in sim.view.free_hosts and sim.view.idle_since(host) <= since and not taken:
            sim.switch_off([host])

    def _reward(self) -> float:
        view, hosts = self.sim.view, self.sim.view.nb_hosts
        waits = sum(1 / job.walltime for job in self._queue())
        idle, busy = (len(view.hosts_that(state)) / hosts for state in (HostState.IDLE, HostState.COMPUTING))
        return busy / max(1, self.t_shutdown) - idle - waits

    def _state(self):
        view, jobs, agenda = self.sim.view, np.zeros((self.slots, 4)), np.zeros((self.sim.view.nb_hosts, 3))
        for row, job in zip(jobs, self._queue(), strict=False):
            row[:] = job.submit_time, job.size, job.walltime, job.user
        for job in view.running:
            agenda[job.hosts] = np.nan_to_num(job.start_time), job.walltime, job.user
        seen = {"jobs": jobs, "status": view.host_states, "agenda": agenda, "time": np.array([view.now])}
        return {name: np.asarray(each, np.float32) for name, each in seen.items()}


def _in_seconds(sim, seconds) -> float:
    """So many seconds later as batsim-py counts them: from a whole second, and after all else of that one."""
    return int(sim.now) + seconds + 0.09


def first_fit(seen) -> int:
    """GridGym's example: the first job that fits on the hosts that run none."""
    available = (seen["agenda"][:, 1] == 0).sum()
    fits = np.flatnonzero((seen["jobs"][:, 1] > 0) & (seen["jobs"][:, 1] <= available))
    return int(fits[0]) + 1 if len(fits) else 0


if __name__ == "__main__":
    env = SchedulingEnv("taurus", "taurus_week", t_action=60, t_shutdown=300, jobs=slice(0, 60))
    (seen, _), over, score, steps = env.reset(), False, 0.0, 0
    while not over:
        seen, reward, over, _, _ = env.step(first_fit(seen))
        score, steps = score + reward, steps + 1
    print(f"score {score:.1f}, {steps:,} steps")
    print(env.sim.result().summary())
