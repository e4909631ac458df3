"""How many jobs of a workload a checkpoint was learned from."""

import pytest
from msgspec.structs import replace

from decision.files import load_workload
from decision.files.text import InputFacts, file_facts
from decision.files.workload import Selection
from decision.model.computer import find_workload
from decision.model.errors import ConfigError
from decision.rl.learning.checkpoint import Manifest, require_unseen, seen_jobs, seen_text, write_checkpoint
from decision.rl.learning.config import TrainConfig


@pytest.fixture
def log(root):
    return root / "workloads" / "lublin_256.json"


@pytest.fixture
def learned(log, tmp_path):
    def make(selection, facts=None):
        path = tmp_path / "a.ckpt"
        manifest = Manifest(
            decision="0",
            algorithm="ppo",
            config=TrainConfig(),
            encoder={},
            nb_hosts=256,
            platform=InputFacts(name="p.xml", sha256=""),
            workloads=(facts or file_facts(log),),
            selection=selection,
            steps=1,
        )
        write_checkpoint(path, manifest, b"")
        return str(path)

    return make


@pytest.mark.parametrize(
    ("selection", "seen"),
    [
        (Selection(jobs=(0, 100)), 50),
        (Selection(jobs=(150, None)), 0),
        (Selection(jobs=(70, 80), walltime="runtime"), 10),
        (Selection(), 100),
        (None, 0),
    ],
)
def test_jobs_are_known_again_by_their_file_and_number(learned, log, selection, seen):
    assert seen_jobs(learned(selection), load_workload(log, jobs=slice(50, 150))) == seen


def test_a_checkpoint_that_does_not_say_which_jobs_is_not_said_to_have_seen_all(learned, log):
    text = seen_text(learned(None), load_workload(log))
    assert "was learned from jobs of" in text and "does not say which" in text
    assert seen_text("easy", load_workload(log)) == ""


def test_days_made_like_those_that_were_learned_from_count_as_seen():
    days = load_workload(find_workload("orion_days"))
    assert seen_jobs("joint", days) == len(days.jobs)
    assert "made like those of orion" in seen_text("joint", days)
    with pytest.raises(ConfigError, match="gates are for jobs that nothing was learned from; choose others"):
        require_unseen("joint", days)
    assert seen_jobs("joint", replace(days, description="")) == 0


def test_ranges_count_the_jobs_that_are_left(learned, log):
    small = load_workload(log, nodes=4)
    assert seen_jobs(learned(Selection(nodes=4, jobs=(0, 20))), small) == 20
    first = load_workload(log, jobs=slice(20))
    assert 0 < seen_jobs(learned(Selection(jobs=(0, 20))), small) == sum(job.size <= 4 for job in first.jobs) < 20


def test_others_are_not_learned_from_it(learned, log):
    jobs = load_workload(log)
    assert seen_jobs("easy,power=idle-timeout", jobs) == 0
    assert seen_jobs(learned(Selection(), InputFacts(name=log.name, sha256="0" * 64)), jobs) == 0
    assert seen_jobs(learned(Selection()), replace(jobs, path="")) == 0
