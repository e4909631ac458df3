"""What environments refuse, in one line."""

import pytest
from helpers.env_toys import busy, setup, workload

from decision.model.errors import ConfigError
from decision.model.workload import Workload
from decision.rl.envs import make_setup


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": (1, 2, 3)}, "three numbers between 0 and 1"),
        ({"weights": (1, 0)}, "three numbers between 0 and 1"),
        ({"jobs": 0}, "jobs: must be a whole number, at least 1; found 0"),
        ({"encoder": "dfb"}, "there is no encoder 'dfb'"),
        ({"encoder": "inspector", "base": "f9"}, "no order 'f9' to inspect"),
        ({"head": 0, "tail": 0}, "at least one slot"),
        ({"max_runtime": -1.0}, "max_runtime: must be positive"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ConfigError, match=message) as caught:
        setup(**options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("jobs", "message"),
    [
        (workload(4, (0, 5, 10, 10)), "there are no jobs for 4 hosts"),
        (workload(4, (0, 1, float("inf"), 10)), "job w0!0000 has no 'walltime'"),
        (Workload(name="w0", jobs=[], profiles={}, nb_res=4), "there are no jobs"),
    ],
)
def test_workloads_that_no_policy_could_schedule_are_refused(jobs, message):
    with pytest.raises(ConfigError, match=message):
        make_setup(jobs)


def test_jobs_that_need_more_hosts_are_left_out_as_the_engines_reject_them(caplog):
    made = make_setup(workload(4, (0, 4, 10, 10), (1, 5, 10, 10), (2, 6, 10, 10), (3, 1, 10, 10)), jobs=2)
    assert made.trace.truth.size[:2].tolist() == [4, 1]
    assert "rejected 2 jobs that do not fit the platform of 4 hosts, the first is w0!0001 with 5" in caplog.text


def test_files_are_read_and_a_missing_one_is_named(root, tmp_path):
    made = make_setup(root / "workloads" / "lublin_256.json", jobs=10)
    assert made.encoder.cores == len(made.platform.hosts) == 256
    with pytest.raises(ConfigError, match=r"nowhere\.swf"):
        make_setup(tmp_path / "nowhere.swf")


def test_an_encoder_of_another_cluster_is_refused():
    with pytest.raises(ConfigError, match="has 32 hosts, but the policy's observations are of 16"):
        setup(busy(50, 32), encoder=setup(busy(50, 16)).encoder)
