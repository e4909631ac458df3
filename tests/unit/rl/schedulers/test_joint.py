"""The joint policy: rules with constants are among it, weights turn it, and it is the same everywhere."""

import numpy as np
import pytest
from helpers.day_toys import ENERGY, busy_days_of
from helpers.policy_toys import platform
from helpers.power_toys import starts, switches, workload
from msgspec.structs import replace

from decision.batsim import agent as agents
from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.reference.engine import ReferenceEngine
from decision.experiments.metric_list import measure_run
from decision.experiments.run import simulate_by_messages
from decision.model.dates import DAY_LEAD, busy_days, of_day
from decision.model.errors import ConfigError
from decision.rl.envs import equal_hosts, evaluate, make_setup
from decision.rl.schedulers import find_scheduler
from decision.rl.schedulers import joint as n
from decision.rl.schedulers.joint import JointPolicy, read_weights, saf_packed
from decision.simulation import simulate_workloads
from decision.state.cluster import new_state, platform_facts

SERVERS = platform(4, sleeps=True, cores=2)  # two servers of two cores, asleep in 5 s and awake in 20 s
JOINT = find_scheduler("joint")


def run(policy, *jobs):
    return simulate_workloads(SERVERS, [workload(*jobs)], policy, engine_options=ENERGY)


@pytest.fixture(scope="module")
def odd():
    """Days on hosts whose switches are no whole seconds, nor are submissions: no two events fall together."""
    made = busy_days_of(2, seed=3, hosts=8)
    jobs = [replace(job, submit_time=job.submit_time + 0.0137 * (k + 1)) for k, job in enumerate(made.jobs)]
    return replace(made, jobs=jobs), platform(8, sleeps=True, wake=151.47, doze=6.13, cores=2)


@pytest.mark.parametrize(("timeout", "patience"), [(60.0, 300.0), (300.0, 0.0), (120.0, 900.0)])
def test_a_rule_with_constants_is_a_joint_policy(odd, timeout, patience):
    trace, on = odd
    weights = saf_packed(timeout, patience)
    weights[n.ORDER_WEIGHTS + 2] = 0.0  # without sizes: shortest walltime first
    rule = f"sjf+first-fit,start=bound,power=idle-timeout,allocation=pack,idle_timeout={timeout},patience={patience}"
    for day in busy_days(trace):
        alone = of_day(trace, day)
        theirs = simulate_workloads(on, [alone], rule, engine_options=ENERGY)
        own = simulate_workloads(on, [alone], JointPolicy(weights), engine_options=ENERGY)
        assert own.jobs.start_time.tolist() == pytest.approx(theirs.jobs.start_time.tolist(), abs=1e-3)
        assert list(own.jobs.allocation) == list(theirs.jobs.allocation)
        assert measure_run(own, on, {}, {})["switches"] == measure_run(theirs, on, {}, {})["switches"]


def test_a_server_that_a_job_takes_does_not_fall_asleep_at_that_instant():
    record = run(JointPolicy(saf_packed(100.0, 0.0)), (0, 1, 10, 10), (110, 1, 10, 10))
    assert starts(record) == [0, 110], "a rule with start=bound would put server 0 to sleep first"
    assert switches(record)[0] == (100, "2-3", -2)


def test_patience_is_only_for_waking():
    record = run(JointPolicy(saf_packed(100.0, 300.0)), (500, 1, 10, 10), (600, 1, 10, 10))
    assert starts(record) == [820, 820], "the second one takes the other core of the server that wakes"


def test_energy_makes_jobs_wait_and_wait_makes_servers_wake():
    weights = JOINT.first_weights(np.random.default_rng(0))
    waits = []
    for traded in ({"energy": 5.0, "wait": 1.0}, {"wait": 1.0}, {"wait": 5.0}):
        record = run(JOINT.policy(weights, **traded), (500, 1, 10, 10))
        waits += [start - 520 for start in starts(record)]
    assert waits[1] == pytest.approx(300.0)
    assert waits[0] > waits[1] > waits[2]


def test_weights_count_by_their_shares_and_are_even_by_default():
    policies = [JOINT.policy(saf_packed(), energy=e, wait=w, switches=s) for e, w, s in ((2, 2, 2), ("0.1",) * 3)]
    policies.append(JOINT.policy(saf_packed()))
    state = new_state(*platform_facts(SERVERS, True), 4)
    for policy in policies:
        policy.reset(SERVERS, 0)
        seen = policy.memory_for(state).seen[n.TRADE : n.TRADE + 3]
        assert seen == pytest.approx(np.zeros(3))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"energy": -1.0}, "option energy=-1 must be finite and not negative"),
        ({"wait": "inf"}, "option wait=inf must be finite and not negative"),
        ({"switches": "many"}, "option switches='many' must be a number"),
        (dict.fromkeys(("energy", "wait", "switches"), 0.0), "energy, wait, switches are all 0"),
    ],
)
def test_weights_that_make_no_sense_are_refused(options, text):
    with pytest.raises(ConfigError, match=text):
        read_weights("joint", options)


def test_hosts_that_never_sleep_are_refused():
    with pytest.raises(ConfigError, match=r"no host has sleep states.*decision platform grid5000 --energy taurus"):
        JointPolicy(saf_packed()).reset(equal_hosts(4), 0)


def learned() -> JointPolicy:
    """Weights that nobody chose: all functions see all that they can see."""
    weights = JOINT.first_weights(np.random.default_rng(0))
    return JointPolicy(weights + 0.3 * np.random.default_rng(5).standard_normal(len(weights)))


def test_days_are_the_same_in_the_environment_on_both_engines_and_through_messages(odd, monkeypatch):
    trace, on = odd
    monkeypatch.setattr(agents, "find_policy", lambda name, options: learned())
    made = make_setup(trace, on, encoder="deepscheduling", steps=100_000)
    found = evaluate(learned(), made, first=[day.first for day in busy_days(trace)])
    for k, day in enumerate(busy_days(trace)):
        alone = of_day(trace, day)
        record = simulate_workloads(on, [alone], learned(), engine_options=ENERGY)
        measured = measure_run(record, on, {}, {}, DAY_LEAD)
        assert found["switches"][k] == measured["switches"]
        assert found["energy_waste"][k] == pytest.approx(measured["energy_waste"])
        assert found["placed_waiting_time"][k] == pytest.approx(measured["wait"])
        for engine in (EmbeddedEngine, ReferenceEngine):
            told = simulate_by_messages(engine(on, [alone], (), ENERGY), agents.Agent("learned", {}, platform=on))
            assert told.jobs.start_time.tolist() == record.jobs.start_time.tolist()
            assert list(told.jobs.allocation) == list(record.jobs.allocation)
            assert told.pstates.hosts == record.pstates.hosts
            assert told.pstates.time.tolist() == record.pstates.time.tolist()


def test_its_memory_grows_and_keeps_what_it_knows():
    policy = learned()
    policy.reset(SERVERS, 0)
    few = policy.memory_for(new_state(*platform_facts(SERVERS, True), 4))
    few.user[few.user.size - 1], few.confidence[few.user.size - 1] = 7, 0.25
    grown = policy.memory_for(many := new_state(*platform_facts(SERVERS, True), 64), few)
    assert grown.confidence[grown.user.tolist().index(7)] == 0.25
    assert len(grown.key) == len(grown.previous) == 64
    assert policy.memory_for(many, grown) is grown
