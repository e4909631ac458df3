"""Policies with predicted run times start jobs as their twin in plain Python, and never look ahead."""

import msgspec
import numpy as np
import pytest
from helpers.outlook_reference import HOSTS, ReferenceEasy, made
from helpers.policy_toys import platform

from decision.batsim.agent import Agent
from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.rules import EngineOptions
from decision.experiments.run import simulate_by_messages
from decision.model.workload import Delay, Workload
from decision.simulation import simulate_workloads

EASY_PLUS_PLUS = "easy++"


def starts(work: Workload, policy) -> dict[str, float]:
    jobs = simulate_workloads(platform(HOSTS), [work], policy).jobs
    return dict(zip(jobs.id, np.asarray(jobs.start_time).tolist(), strict=True))


@pytest.mark.parametrize("correction", ["walltime", "increments", "doubling"])
@pytest.mark.parametrize("estimate", ["last2", "regression", "given"])
def test_easy_by_predictions_starts_jobs_as_its_twin(estimate: str, correction: str) -> None:
    differs = False
    for seed in range(4):
        work = made(seed)
        for shortest in (False, True):
            spec = f"easy,estimate={estimate},correction={correction}" + ",backfill_order=sjf" * shortest
            own = starts(work, spec)
            assert own == starts(work, ReferenceEasy(estimate, correction, shortest)), (seed, spec)
            differs |= own != starts(work, "easy,backfill_order=sjf" if shortest else "easy")
    assert differs  # predictions matter here


def test_easy_by_quantiles_starts_jobs_as_its_twin() -> None:
    differs = set()
    for seed in range(4):
        work = made(seed, 200)
        for levels in ((0.5, 0.8), (0.8, 0.25)):
            spec = "easy,backfill_order=sjf,estimate=quantiles,shadow={},fill={}".format(*levels)
            own = starts(work, spec)
            assert own == starts(work, ReferenceEasy("quantiles", shortest_first=True, levels=levels)), (seed, spec)
            differs.add(own == starts(work, "easy,backfill_order=sjf"))
    assert False in differs  # predictions matter here


@pytest.mark.parametrize(
    "policy",
    [
        EASY_PLUS_PLUS,
        "easy,backfill_order=sjf,estimate=quantiles,shadow=0.5,fill=0.8",
        "conservative,estimate=quantiles",
        "kamelot,estimate=quantiles,fill=0.5",
        "sjf+easy,estimate=regression,correction=doubling",
        "conservative,estimate=last2,correction=increments",
        "kamelot,estimate=last2",
        "easy,estimate=given",
        "f1+first-fit,estimate=regression",
        "easy,estimate=last2,guard=600",
    ],
)
def test_messages_and_the_embedded_engine_give_one_schedule(policy: str) -> None:
    for seed in range(3):
        work = made(seed, 80)
        engine = EmbeddedEngine(platform(HOSTS), [work], (), EngineOptions())
        jobs = simulate_by_messages(engine, Agent(policy, {})).jobs
        assert dict(zip(jobs.id, np.asarray(jobs.start_time).tolist(), strict=True)) == starts(work, policy), seed


@pytest.mark.parametrize(
    "policy", [EASY_PLUS_PLUS, "conservative,estimate=regression", "wfp3,estimate=last2", "sjf+easy,estimate=quantiles"]
)
def test_run_times_changed_after_an_instant_change_no_decision_before_it(policy: str) -> None:
    work = made(7)
    own = simulate_workloads(platform(HOSTS), [work], policy).jobs
    start, end = own.start_time, own.start_time + own.runtime
    instant = float(np.median(start))
    later = {job_id for job_id, at in zip(own.id, end.tolist(), strict=True) if at > instant}
    profiles = {
        job.profile: Delay(work.profiles[job.profile].duration * 1.0 + 1e5 * (job.id in later)) for job in work.jobs
    }
    # a job that ran at the instant runs on for longer; its walltime still ends it
    other = starts(msgspec.structs.replace(work, profiles=profiles), policy)
    before = {job_id: at for job_id, at in zip(own.id, start.tolist(), strict=True) if at <= instant}
    assert len(before) > 30
    assert {job_id: other[job_id] for job_id in before} == before


@pytest.mark.parametrize("policy", ["easy", "sjf+easy", "conservative", "kamelot", "saf+first-fit", "wfp3"])
def test_predictions_equal_to_walltimes_give_the_schedule_of_walltimes(policy: str) -> None:
    work = made(3)
    told = tuple(msgspec.structs.replace(job, estimate=job.walltime) for job in work.jobs)
    exact = msgspec.structs.replace(work, jobs=told)
    nobody = made(3, users=0)
    assert starts(exact, f"{policy},estimate=given") == starts(exact, policy)
    assert starts(nobody, f"{policy},estimate=last2,correction=doubling") == starts(nobody, policy)
