"""Bound starts are those of their twin in plain Python, on both engines."""

import functools
import tempfile
from pathlib import Path

from helpers.booked_reference import KEYS, BoundTwin
from helpers.policy_toys import platform
from helpers.power_toys import workload
from hypothesis import given, settings
from hypothesis import strategies as st

from decision.batsim.agent import Agent
from decision.engine.rules import EngineOptions
from decision.experiments import Engine
from decision.experiments.run import make_engine, simulate_by_messages
from decision.files import load_platform, write_platform
from decision.model.platform import Platform
from decision.model.record import RunRecord
from decision.model.workload import Workload
from decision.simulation import simulate_workloads

ENERGY = EngineOptions(energy=True)
JOBS = st.lists(
    st.tuples(st.integers(0, 400).map(float), st.integers(1, 6), st.integers(1, 120).map(float), st.booleans()),
    min_size=1,
    max_size=14,
)
RULES = st.tuples(
    st.sampled_from(sorted(KEYS)),
    st.sampled_from(["none", "first-fit", "easy"]),
    st.booleans(),
    st.sampled_from([0.0, 30.0]),
    st.sampled_from([0.0, 10.0, 50.0]),
)


@functools.cache
def servers_in_a_file() -> Platform:
    """Three servers of two hosts, with the properties that Batsim tells of."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "servers.xml"
        write_platform(path, platform(6, sleeps=True, cores=2))
        return load_platform(path, energy=True)


def facts(record: RunRecord) -> list[object]:
    jobs, pstates = record.jobs, record.pstates
    rows = sorted(zip(jobs.id, jobs.start_time.tolist(), jobs.allocation, strict=True))
    return [*rows, *zip(pstates.time.tolist(), pstates.hosts, pstates.pstate.tolist(), strict=True)]


def _made(jobs) -> Workload:
    return workload(*sorted((s, n, w, w / 2 if early else w) for s, n, w, early in jobs))


def _spec(order: str, backfill: str, packs: bool, patience: float, timeout: float) -> str:
    name = f"{order}+{backfill}" if backfill != "none" else order
    packed = ",allocation=pack" if packs else ""
    return f"{name},start=bound,power=idle-timeout,idle_timeout={timeout},patience={patience}{packed}"


@given(JOBS, RULES, st.sampled_from([0, 2, 3]))
@settings(max_examples=120, deadline=None, derandomize=True)
def test_bound_starts_are_those_of_the_twin(jobs, rule, cores) -> None:
    order, backfill, packs, patience, timeout = rule
    made, on = _made(jobs), platform(6, sleeps=True, cores=cores)
    spec = _spec(order, backfill, packs, patience, timeout)
    ours = simulate_workloads(on, [made], spec, engine_options=ENERGY)
    twin = simulate_workloads(on, [made], BoundTwin(order, backfill, packs, patience, timeout), engine_options=ENERGY)
    assert facts(ours) == facts(twin)
    assert len(ours.jobs.id) == len(jobs), "every job runs"


@given(JOBS, RULES)
@settings(max_examples=25, deadline=None, derandomize=True)
def test_bound_starts_are_the_same_through_messages_to_the_reference_engine(jobs, rule) -> None:
    order, backfill, packs, patience, timeout = rule
    made, on = _made(jobs), servers_in_a_file()
    spec = _spec(order, backfill, packs, patience, timeout)
    ours = simulate_workloads(on, [made], spec, engine_options=ENERGY)
    for known in (on, None):  # Batsim does not tell how long hosts take to wake: only EASY's reservation wants it
        if known or backfill != "easy":
            engine = make_engine(Engine.REFERENCE, on, [made], [], ENERGY)
            told = simulate_by_messages(engine, Agent(spec, {}, platform=known))
            assert facts(told) == facts(ours)
