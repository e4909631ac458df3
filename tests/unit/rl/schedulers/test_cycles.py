"""What a decision's cycles show of the state, and what a choice plans."""

import numpy as np
import pytest

from decision.batsim.follower import carry_out
from decision.model.platform import Host, Platform, PowerState
from decision.rl.schedulers import decision_points as c
from decision.rl.schedulers.dbf import Dbf, DbfEncoder
from decision.state import transitions
from decision.state.cluster import new_state, platform_facts
from decision.state.plan_arrays import clear, new_plan

HOSTS = 6
PER_CORE = DbfEncoder(cores=HOSTS, cluster=HOSTS, head=2, tail=1, max_runtime=100.0, max_wait=100.0)
PER_POOL = DbfEncoder(name="dbf-pools", cores=0, cluster=5, head=2, tail=1, max_runtime=160.0, max_wait=100.0)


class Cluster:
    """A state, the cycles over it, and a plan."""

    def __init__(self) -> None:
        hosts = tuple(Host(id=i, name=f"h{i}", pstates=(PowerState(1e9),)) for i in range(HOSTS))
        self.facts, pstates = platform_facts(Platform(hosts=hosts), energy=False)
        self.state = new_state(self.facts, pstates, 16)
        self.cycles, self.plan = c.new_cycles(self.state), new_plan(self.state)

    def submit(self, *jobs: tuple[int, float]) -> None:
        for size, walltime in jobs:
            transitions.submit(self.state, size, walltime, -1)

    def begin(self, now: float) -> bool:
        self.state.now = now
        clear(self.plan, self.state)
        return c.begin_decision(self.state, self.cycles)

    def show(self) -> int:
        return int(c.show_arrival(self.state, self.cycles))

    def act(self, action: int) -> int:
        before, memory = self.plan.nb_actions, PER_CORE.new_memory(self.state)
        goes_on = Dbf.act(self.state, self.facts, self.cycles, self.plan, memory, action)
        assert goes_on == (self.plan.nb_actions > before)
        return int(self.plan.job[before]) if goes_on else -1

    def finish(self) -> None:
        carry_out(self.state, self.facts, self.plan)
        self.state.nb_ended = 0

    def see(self, encoder: DbfEncoder = PER_CORE) -> tuple[np.ndarray, list[int]]:
        observation, mask = np.full(encoder.shape, np.nan, np.float32), np.full(4, 9, np.int8)
        Dbf.observe(self.state, self.facts, self.cycles, self.plan, encoder.new_memory(self.state), observation, mask)
        return observation, mask.tolist()

    @property
    def queue(self) -> list[int]:
        return self.cycles.queue[: self.cycles.nb_queued].tolist()


def test_arrivals_are_shown_one_by_one_and_choices_stay_until_the_decision_ends():
    cluster = Cluster()
    cluster.submit((4, 50.0), (2, 20.0), (3, 10.0))
    assert not cluster.begin(0.0)
    assert (cluster.show(), cluster.queue) == (0, [0])
    assert cluster.act(0) == 0
    assert (cluster.show(), cluster.queue) == (1, [1])
    assert cluster.act(3) == -1
    assert (cluster.show(), cluster.queue) == (2, [1, 2])
    observation, mask = cluster.see()
    assert observation[:6] == pytest.approx([0.5, 0.5, 0.5, 0.5, 0, 0])
    assert mask == [1, 0, 0, 1], "the third job needs three of two free cores"
    assert cluster.act(1) == -1
    assert cluster.act(0) == 1
    assert cluster.show() == -1
    cluster.finish()
    assert cluster.state.queue[0] == 2
    assert cluster.state.host_job.tolist() == [0, 0, 0, 0, 1, 1]


def test_the_next_decision_begins_with_the_jobs_that_ended():
    cluster = Cluster()
    cluster.submit((4, 50.0), (2, 20.0), (3, 10.0))
    cluster.begin(0.0)
    cluster.show()
    cluster.act(0)
    cluster.finish()
    assert not cluster.begin(5.0), "nothing happened: no cycle"
    assert cluster.show() == -1
    cluster.state.now = 10.0
    transitions.end(cluster.state, cluster.facts, 0, 0)
    cluster.submit((1, 1.0))
    assert cluster.begin(10.0)
    assert cluster.queue == [1, 2], "the arrival of the same instant is not yet seen"
    assert (cluster.see()[0][:6] == 0).all()
    assert (cluster.show(), cluster.queue) == (3, [1, 2, 3])


def test_hosts_that_leave_and_come_back_begin_a_cycle_and_count_as_busy_for_long():
    cluster = Cluster()
    cluster.begin(0.0)
    transitions.leave(cluster.state, cluster.facts, 5)
    assert cluster.begin(1.0)
    assert cluster.see()[0][:6].tolist() == [0, 0, 0, 0, 0, 1]
    assert not cluster.begin(2.0)
    transitions.come_back(cluster.state, cluster.facts, 5)
    assert cluster.begin(3.0)
    assert cluster.see()[0][:6].tolist() == [0] * 6


def test_fwd_is_masked_where_an_idle_cluster_could_work():
    cluster = Cluster()
    cluster.submit((6, 10.0), (6, 10.0))
    cluster.begin(0.0)
    assert cluster.see()[1] == [0, 0, 0, 1], "nobody waits"
    cluster.show()
    assert cluster.see()[1] == [1, 0, 0, 0]
    cluster.act(0)
    cluster.show()
    assert cluster.see()[1] == [0, 0, 0, 1]


def test_pools_are_shares_of_cores_by_the_power_of_two_that_their_time_is_below():
    cluster = Cluster()
    cluster.submit((1, 5.0), (1, 20.0), (1, 41.0), (1, 160.0))
    cluster.begin(0.0)
    for _ in range(4):
        cluster.show()
        cluster.act(0)
    sixth = 1 / 6
    planned = cluster.see(PER_POOL)[0][:5]
    assert planned == pytest.approx([2 * sixth, 2 * sixth, 0, sixth, sixth]), "up to 20, 40, 80 and 160 s"
    cluster.finish()
    cluster.begin(0.0)
    assert np.array_equal(cluster.see(PER_POOL)[0][:5], planned), "the same once they run"
    transitions.leave(cluster.state, cluster.facts, 5)
    cluster.begin(82.0)
    assert cluster.see(PER_POOL)[0][:5] == pytest.approx([sixth, 3 * sixth, 0, sixth, sixth])
