"""How the policy packer is made, with few and short schedules; and what ships."""

import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("torch")
from decision.batsim.agent import Agent
from decision.engine.batsim4 import EmbeddedEngine
from decision.experiments.run import simulate_by_messages
from decision.model import errors
from decision.model.demand import runtimes
from decision.papers.campaign import Parts
from decision.papers.own import evolved
from decision.papers.own.evolved import kept
from decision.papers.packing.claims import made_half, setup_of
from decision.policies import find_policy
from decision.rl.envs import equal_hosts, evaluate
from decision.rl.learning import existing_checkpoint, load_policy
from decision.rl.learning.checkpoint import read_manifest, require_gates
from decision.rl.schedulers.ranking import Packer, largest_area_first
from decision.simulation import simulate_workloads


def test_a_stopped_evolution_goes_on_and_learns_the_same(tmp_path):
    shown, folder = [], tmp_path / "stopped"
    evolved.reproduce_packer(Parts(folder), generations=1, jobs=30)
    first = (folder / "generation-0.json").stat().st_mtime_ns
    parts = Parts(folder, progress=lambda done, of: shown.append((done, of)))
    stopped = evolved.reproduce_packer(parts, generations=2, jobs=30)
    assert (folder / "generation-0.json").stat().st_mtime_ns == first, "nothing is scheduled again"
    assert shown == [(1, 2), (2, 2)]
    at_once = evolved.reproduce_packer(Parts(tmp_path / "at once"), generations=2, jobs=30)
    assert stopped.tables == at_once.tables
    learned = folder / "packer.ckpt"
    assert learned.read_bytes() == (tmp_path / "at once" / "packer.ckpt").read_bytes()
    assert read_manifest(learned).config.scheduler == "packer"
    assert load_policy(str(learned), {}).name == "packer.ckpt"


def test_what_is_kept_is_made_again_for_other_inputs(tmp_path):
    made = []

    def double(values, _):
        made.append(values)
        return 2 * values

    for values, jobs in ((1.5, 30), (1.5, 30), (1.5, 40), (2.5, 40)):
        assert kept(tmp_path / "kept.json", double, np.array([values]), jobs).tolist() == [2 * values]
    assert len(made) == 3


def test_what_is_learned_from_is_of_other_shares_and_its_walltimes_are_run_times():
    for number in (0, evolved.nb_halves() - 1):
        made = evolved.made_kind(number, 1000)
        assert [job.walltime for job in made.jobs] == [max(run, 1.0) for run in runtimes(made).tolist()]
        single = np.mean([job.size == 1 for job in made.jobs])
        assert min(abs(single - share) for share in (0.8, 0.2)) > 0.02


def test_learning_begins_with_the_largest_area_first_and_easy():
    setup = setup_of(made_half(0, "WL1_100", "b", 200))
    own, laf = (evaluate(policy, setup, first=[0]) for policy in (Packer().policy(largest_area_first()), "laf+easy"))
    assert own["duration"] == laf["duration"]
    assert own["packed_utilization"] == pytest.approx(laf["packed_utilization"])


def test_packing_makes_the_same_schedule_in_environment_engine_and_messages():
    jobs, platform, policy = made_half(0, "WL2_RND", "b", 120), equal_hosts(256), "packer,estimate=given"
    simulated = simulate_workloads(platform, [jobs], policy).jobs
    told = simulate_by_messages(EmbeddedEngine(platform, [jobs]), Agent(policy, {}, platform=platform)).jobs
    assert (told.id, told.allocation) == (simulated.id, simulated.allocation)
    assert told.start_time.tolist() == simulated.start_time.tolist()
    began = []
    evaluate(policy, setup_of(jobs), first=[0], began=began)
    by_id = dict(zip(simulated.id, simulated.start_time.tolist(), strict=True))
    assert began[0].start.tolist() == pytest.approx([by_id[job.id] for job in jobs.jobs])


def test_packing_uses_more_than_the_largest_area_first():
    setup = setup_of(made_half(3, "WL2_RND", "b", 400))
    used = {
        policy: evaluate(policy, setup, first=[0])["packed_utilization"][0]
        for policy in ("packer,estimate=given", "laf+easy", "easy")
    }
    assert used["packer,estimate=given"] > used["laf+easy"] > used["easy"]


def test_the_shipped_packer_needs_no_torch():
    code = (
        "import sys; sys.modules['torch'] = None; sys.modules['gymnasium'] = None\n"
        "from decision.policies import find_policy; print(find_policy('packer,estimate=last2'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "<policy packer, estimate=last2>"), done.stderr


def test_the_name_that_it_had_before_still_names_it_and_says_the_new_one(caplog):
    errors.warn_once.cache_clear()
    former, present = find_policy("packing,estimate=last2"), find_policy("packer,estimate=last2")
    assert (former.policy.weights == present.policy.weights).all()
    assert [line for line in caplog.messages if "packing" in line] == [
        "policy packing: call it packer; what decision train packing makes is another"
    ]
    assert existing_checkpoint("packing") == existing_checkpoint("packer")
    require_gates("packing,estimate=given")  # shipped under either name
