"""Launchpad's claims, with the smoke budget as it is."""

import csv
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from decision.model.demand import submit_times
from decision.papers import launchpad
from decision.papers.campaign import Parts, Verdict
from decision.papers.launchpad import (
    BC,
    BOTH,
    HEURISTICS,
    LAUNCHPAD,
    MIXES,
    OFFLINE,
    ONLINE,
    WORLD_STEP,
    LaunchpadPart,
    Learner,
    agreement_with,
    heuristic_choices,
    heuristic_shares,
    jobs_in,
    learner_config,
    play,
    rollout,
    rollout_jobs,
    rollouts_of,
    world,
)
from decision.rl.envs import evaluate
from decision.rl.learning.schedulers import choosing_setup

SMOKE, JOBS = LAUNCHPAD.budgets["smoke"], 40


def setup_of(tested):
    config = learner_config(Learner(BC, "qos"), SMOKE.effort, 0)
    return choosing_setup(config, tested.workload, tested.platform, events=tested.events)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder, told = tmp_path_factory.mktemp("launchpad"), []
    found = LAUNCHPAD.reproduce(Parts(folder, progress=lambda done, of: told.append((done, of))))
    return folder, found, told


def test_the_smoke_budget_judges_each_claim_that_it_has_learners_for(done):
    folder, found, told = done
    assert told[-1] == (7, 7)
    values, claims, agreement, fit, seconds = found.tables
    names = [row[0] for row in values.rows]
    assert {"QoS", "QoS, suspending", "bound", "BC_qos", "Offline+Online_qos"} <= set(names)
    means = {row[0]: float(row[1].split()[0]) for row in values.rows}
    assert all(0 <= mean <= means["bound"] for mean in means.values())
    assert {row[0] for row in claims.rows} - {"C9"} == {"C1", "C2", "C3", "C5", "C6", "C8", "C10"}
    assert all(row[3] for row in claims.rows), "what has no number has no row"
    assert claims.title.endswith("more claims of a size have no runs")
    assert {row[4] for row in claims.rows if row[0] != "C1"} == {Verdict.NOT_TRIED}, "these agents are ours"
    assert {row[5] or row[4] for row in claims.rows} == {"undecided (1 run)"}
    assert [row[0] for row in agreement.rows][::2] == ["BC", "Offline", "Offline+Online", "most possible"]
    assert agreement.rows[-1][1] == "100% (100%)", "one heuristic alone can be agreed with"
    assert len(fit.rows) == 4
    assert all(float(row[2]) > 0 for row in seconds.rows)
    assert (folder / "smoke" / "table.md").read_text().count("## ") == 5
    assert len(list((folder / "smoke").glob("figure-*.svg"))) == 4
    bars = list(csv.DictReader((folder / "smoke" / "figure-3.csv").open()))
    assert [(row["who"], row["hosts"]) for row in bars] == [("QoS", "10"), ("BC_qos", "10"), ("BC_combo", "10")]
    assert float(bars[0]["value"]) == pytest.approx(means["QoS"], abs=1e-3)


def test_a_second_run_repeats_nothing(done):
    folder, found, told = done
    again = LAUNCHPAD.reproduce(Parts(folder, progress=lambda done, of: told.append((done, of))))
    assert (again, len(told)) == (found, 7)
    missing = LaunchpadPart(budget=SMOKE, hosts=10, contender=Learner(ONLINE, ""), seed=0, folder=folder / "smoke").file
    kept = missing.read_bytes()
    missing.unlink()
    shown = LAUNCHPAD.reproduce(Parts(folder), only_finished=True)
    assert "6 of 7 parts" in shown.notes
    assert not missing.exists()
    missing.write_bytes(kept)


def test_before_anything_is_learned_the_heuristics_are_shown(done, tmp_path):
    folder, found, _ = done
    rules = LaunchpadPart(budget=SMOKE, hosts=10, contender="rules", seed=0, folder=folder / "smoke").file
    (tmp_path / "smoke").mkdir()
    (tmp_path / "smoke" / rules.name).write_bytes(rules.read_bytes())
    shown = LAUNCHPAD.reproduce(Parts(tmp_path), only_finished=True)
    assert "1 of 7 parts" in shown.notes
    values, claims = shown.tables
    assert list(values.rows) == list(found.tables[0].rows)[: len(values.rows)]
    assert {row[0] for row in claims.rows if row[4] != Verdict.NOT_TRIED} == {"C1"}


def test_a_training_that_has_begun_is_shown_with_its_share_and_goes_on(done, tmp_path, monkeypatch):
    folder = done[0]
    part = LaunchpadPart(budget=SMOKE, hosts=10, contender=Learner(BC, "qos"), seed=0, folder=tmp_path / "smoke")
    rules = part.file.with_name("10-rules-0.npz")
    part.folder.mkdir()
    rules.write_bytes((folder / "smoke" / rules.name).read_bytes())
    moments = []

    def interrupted(*given):
        if len(moments) == 6:
            raise KeyboardInterrupt
        moments.append(play(*given))
        return moments[-1]

    monkeypatch.setattr("decision.papers.launchpad.play", interrupted)
    with pytest.raises(KeyboardInterrupt):
        LAUNCHPAD.work(part)
    shown = LAUNCHPAD.reproduce(Parts(tmp_path), only_finished=True)
    assert "1 of 7 parts" in shown.notes
    learned_by = {row[6] for row in shown.tables[1].rows if "BC_qos" in row[1]}
    assert learned_by == {f"ours ({', '.join(SMOKE.effort.presets.values())}), 0.0033 % of its steps, 1 run"}  # a third

    monkeypatch.setattr("decision.papers.launchpad.play", play)
    LAUNCHPAD.work(part)
    assert not part.begun.exists()
    both = np.load(part.file), np.load(folder / "smoke" / part.file.name)
    assert np.array_equal(both[0]["share"], both[1]["share"]), "as if it had not been interrupted"


def test_a_rollout_begins_with_the_power_of_its_first_submission():
    tested = world(10, True, 3, 3 * JOBS)
    for stretch in rollout_jobs(tested, 3, JOBS):
        part = rollout(tested, stretch)
        begin = submit_times(part.workload).min()
        assert part.events[0].timestamp <= begin < part.events[1].timestamp
        assert len(part.workload.jobs) == JOBS


@pytest.mark.parametrize("intermittent", [False, True])
def test_heuristics_get_the_same_in_rollouts_and_in_the_environment(intermittent):
    tested = world(10, intermittent, 3, 3 * JOBS)
    setup = setup_of(tested)
    for rule in HEURISTICS.values():
        there = evaluate(rule, setup, first=np.arange(3) * JOBS)["value_share"]
        np.testing.assert_allclose(heuristic_shares(tested, rule, rollout_jobs(tested, 3, JOBS)), there, rtol=1e-12)


def test_a_rollout_of_steps_has_what_is_submitted_in_them_and_a_policy_that_learned_plays_them_all(done):
    folder, steps, wanted = done[0], 60, 3
    tested = world(10, True, 3, jobs_in(10, wanted * steps))
    rollouts = rollout_jobs(tested, wanted, JOBS, steps)
    submit = submit_times(tested.workload)
    assert submit[-1] - submit[0] > WORLD_STEP * steps * wanted, "there are enough jobs"
    assert [part.start for part in rollouts[1:]] == [part.stop for part in rollouts[:-1]]
    for k, part in enumerate(rollouts):
        since = (submit[part] - submit[0]) / WORLD_STEP
        assert since.min() >= k * steps
        assert since.max() < (k + 1) * steps
    assert len({part.stop - part.start for part in rollouts}) > 1, "their jobs are not equally many"
    (checkpoint,) = (folder / "smoke").glob("10-BC_qos-0-*/*.ckpt")
    shares = play(checkpoint, tested, rollouts)
    for k, part in enumerate(rollouts):
        assert play(checkpoint, tested, [part]) == pytest.approx(shares[k])
    assert LAUNCHPAD.budgets["full"].effort.steps == 100_000, "as the paper has it"


@pytest.mark.parametrize("name", MIXES["combo"])
def test_what_a_heuristic_does_is_read_from_an_observation(name):
    tested = world(10, True, 4, 400)
    seen, forced = rollouts_of(name, setup_of(tested))
    rows = seen.choices
    assert len(rows) > 500
    assert forced > 0
    np.testing.assert_array_equal(heuristic_choices(seen.observation[rows], name, 10), seen.action[rows])


def test_who_chooses_as_the_data_agrees_with_all_of_it_and_with_more_than_half_of_a_mix(monkeypatch):
    tested = world(10, True, 4, 400)
    choose = SimpleNamespace(together=lambda seen, mask: heuristic_choices(seen, "QoS", 10))
    deployed = SimpleNamespace(actor=choose), setup_of(tested)
    monkeypatch.setattr(launchpad, "_deployed", lambda *_: deployed)
    assert agreement_with(None, tested, "qos", JOBS).tolist() == [1, 1]
    of_all, of_choices = agreement_with(None, tested, "qos_sjf", JOBS)
    assert 0.5 < of_choices < of_all < 1, "steps without a choice are agreed on"


def test_a_world_with_a_battery_moves_power_to_when_there_is_little():
    def hosts(battery):
        return np.array([event.hosts[0] for event in world(10, True, 3, 200, battery).events])

    plain, stored = hosts(0.0), hosts(LAUNCHPAD.budgets["battery"].battery)
    assert world(10, True, 3, 200).workload == world(10, True, 3, 200, 4.0).workload
    few = plain <= np.quantile(plain, 0.25)
    assert stored[few].mean() > plain[few].mean()
    assert stored.sum() <= plain.sum() * 1.02


def test_a_violation_costs_nothing_or_the_value_by_the_budget():
    tested, paid = world(10, True, 3, 3 * JOBS), {}
    for name in ("standard", "violations"):
        effort = LAUNCHPAD.budgets[name].effort._replace(jobs=JOBS)
        config = learner_config(Learner(BC, "qos"), effort, 0)
        setup = choosing_setup(config, tested.workload, tested.platform, events=tested.events)
        paid[name] = evaluate(lambda _, masks: masks.argmax(1), setup, first=np.arange(3) * JOBS)
    free, costly = paid["standard"], paid["violations"]
    assert (free["violated_share"] > 0).all()
    np.testing.assert_allclose(free["value_share"], costly["value_share"])
    np.testing.assert_allclose(
        costly["return"] / free["return"], 1 - free["violated_share"] / free["value_share"], rtol=1e-6
    )


def test_updates_have_the_paper_s_ratio_and_standard_has_about_110_trainings(tmp_path):
    effort = LAUNCHPAD.budgets["standard"].effort
    steps = {method: learner_config(Learner(method, "qos"), effort, 0).learn.steps for method in (BC, OFFLINE, ONLINE)}
    assert steps[ONLINE] == 2 * steps[BC] == 2 * steps[OFFLINE]
    both = learner_config(Learner(BOTH, "qos"), effort, 0).learn
    assert both.steps == steps[ONLINE] == 20 * both.offline
    assert both.updates == 1
    tasks = LAUNCHPAD.parts(LAUNCHPAD.budgets["standard"], tmp_path)
    learned = [task.seed for task in tasks if isinstance(task.contender, Learner)]
    assert 100 <= len(learned) <= 120
    assert all(one <= other for one, other in pairwise(learned)), "whole seeds first"


def test_the_full_budget_is_the_papers():
    full = LAUNCHPAD.budgets["full"]
    assert (full.seeds, full.rollouts, full.effort.transitions) == (5, 10, 200_000)
    assert set(full.learners) == {10, 20, 30, 40, 50, 100}
    learned = {method: learner_config(Learner(method, "qos"), full.effort, 0) for method in (BC, OFFLINE, ONLINE, BOTH)}
    assert [each.learn.steps for each in learned.values()] == [500_000, 500_000, 1_000_000, 1_000_000]
    assert (learned[ONLINE].learn.offline, learned[BOTH].learn.offline) == (0, 50_000)
    assert {(each.network.kind, each.network.encoder) for each in learned.values()} == {("image", "shared")}
    assert set(MIXES["combo"]) == {"SJF", "QoS", "FCFS", "HVF"}
