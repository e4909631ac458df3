"""What a run tells of itself while it goes."""

import time

import numpy as np
import pytest

from decision.batsim.agent import Agent
from decision.engine.reference.engine import ReferenceEngine
from decision.experiments.folder import HOST_LETTERS, ReportingResponder, live_status
from decision.experiments.run import simulate_by_messages
from decision.files import load_platform
from decision.files.generate.platforms import simple_cluster
from decision.files.outputs_read import STATUS, Status, read_status
from decision.model.errors import InputError, PolicyError
from decision.model.record import HostState
from decision.model.workload import Delay, Job, Workload
from decision.state.cluster import new_state, platform_facts


def cluster(platform):
    facts, pstates = platform_facts(platform, energy=True)
    return new_state(facts, pstates)


def test_the_file_says_how_far_the_run_is_and_goes_with_it(tmp_path):
    platform = simple_cluster(3)
    state = cluster(platform)
    state.nb_jobs, state.nb_queued, state.nb_running = 7, 2, 1
    state.host_state[1] = HostState.COMPUTING
    with live_status(tmp_path, "easy", 9, platform) as tell:
        assert read_status(tmp_path) is None
        tell(12.5, state)
        status = read_status(tmp_path)
    assert status == Status(
        policy="easy",
        written=status.written,
        jobs=9,
        now=12.5,
        submitted=7,
        waiting=2,
        running=1,
        hosts="ICI",
        watts=pytest.approx(95 + 190.738 + 95),
    )
    assert abs(status.written - time.time()) < 60
    assert list(tmp_path.iterdir()) == []


def test_it_goes_with_a_run_that_fails(tmp_path):
    platform = simple_cluster(1)
    with pytest.raises(PolicyError), live_status(tmp_path, "easy", 1, platform) as tell:
        tell(7.0, cluster(platform))
        raise PolicyError("t=8 s: w0!1 cannot start")
    assert list(tmp_path.iterdir()) == []


def test_it_is_not_written_more_often_than_can_be_seen(tmp_path):
    platform = simple_cluster(1)
    state = cluster(platform)
    with live_status(tmp_path, "easy", 1, platform) as tell:
        for now in range(1000):
            tell(float(now), state)
        assert read_status(tmp_path).now < 999


def test_a_folder_that_is_lost_stops_no_run(tmp_path):
    platform = simple_cluster(1)
    (tmp_path / "file").write_text("")
    with live_status(tmp_path / "file" / "folder", "easy", 1, platform) as tell:
        tell(0.0, cluster(platform))


def test_each_state_of_a_host_has_its_own_letter():
    assert len(set(HOST_LETTERS)) == len(HOST_LETTERS) == len(HostState)


def test_sleeping_hosts_draw_what_their_pstate_does(tmp_path, root):
    platform = load_platform(root / "platforms" / "taurus.xml", energy=True)
    state = cluster(platform)
    state.host_state[0], state.pstate[0] = HostState.SLEEPING, platform.hosts[0].sleep[0].pstate
    with live_status(tmp_path, "easy", 1, platform) as tell:
        tell(0.0, state)
        status = read_status(tmp_path)
    assert status.hosts == "S" + 15 * "I"
    assert status.watts == pytest.approx(9.75 + 15 * 95)


def test_another_file_of_this_name_is_refused(tmp_path):
    (tmp_path / STATUS).write_text("{}")
    with pytest.raises(InputError, match="not the status of a run"):
        read_status(tmp_path)


def test_an_agent_that_is_watched_tells_after_each_reply():
    jobs = tuple(Job(id=f"w0!{i}", submit_time=float(i), size=1, walltime=10.0, profile="p") for i in range(3))
    workload = Workload(name="w0", jobs=jobs, profiles={"p": Delay(5.0)}, nb_res=2)
    told: list[tuple[float, int]] = []

    def progress(now, state):
        told.append((now, int(state.nb_running)))

    platform = simple_cluster(2)
    record = simulate_by_messages(
        ReferenceEngine(platform, [workload]), ReportingResponder(Agent("easy", {}, platform=platform), progress)
    )
    assert record.jobs.id == ["w0!0", "w0!1", "w0!2"]
    assert [now for now, _ in told] == sorted(now for now, _ in told)
    assert np.max([running for _, running in told]) == 2
    assert told[-1] == (10.0, 0)
