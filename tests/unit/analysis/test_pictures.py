"""Pictures of runs side by side: what is on them, measured on their axes."""

import math

import numpy as np
import pytest
from helpers.run_samples import THREE, job_table

from decision.analysis.metrics import only_ran
from decision.analysis.runs import NamedRun, Steps, averaged
from decision.model.record import EnergyTable, HostTable, RunRecord

pictures = pytest.importorskip("decision.analysis.plots.schedules")
timelines = pytest.importorskip("decision.analysis.plots.schedules")


def run(name="easy", jobs=THREE, nb_hosts=4) -> NamedRun:
    states = HostTable(time=np.array([0.0, 100.0]), counts=np.array([[0, 0, 0, 4, 0, 0], [1, 0, 0, 1, 2, 0]]))
    energy = EnergyTable(
        time=np.array([0.0, 200.0]), energy=np.array([0.0, 400e3]), event=["s", "e"], wattmin=np.zeros(2)
    )
    record = RunRecord(nb_hosts=nb_hosts, jobs=jobs, host_states=states, energy=energy, time_in_state=np.zeros(6))
    return NamedRun(name, record, only_ran(jobs))


def test_averages_keep_the_area_under_a_step_function():
    steps = Steps(np.array([0.0, 30.0, 100.0]), np.array([2.0, 5.0, 0.0]))
    means = averaged(steps)
    assert means.times[0] == 0 and means.times[-1] == 99.5
    assert means.values[:60] == pytest.approx(2) and means.values[60:] == pytest.approx(5)


def test_waits_are_averaged_by_powers_of_two_of_hosts_and_by_runtime():
    # two jobs on 3 and 4 hosts that run 2 and 9 minutes, one on one host that runs 30 s
    jobs = job_table((0.0, 3, 10.0, 120.0, "0-2"), (0.0, 4, 30.0, 540.0, "0-3"), (0.0, 1, 7.0, 30.0, "0"))
    means, counts = pictures._wait_cells(jobs, 3)
    assert counts.tolist()[:2] == [[1, 0, 0], [0, 0, 2]] and counts.sum() == 3
    assert means[1, 2] == 20 and means[0, 0] == 7
    assert math.isnan(means[0, 1])


@pytest.mark.parametrize(("power", "text"), [(0, "1"), (1, "2"), (2, "3-4"), (3, "5-8"), (8, "129-256")])
def test_sizes_are_named_by_their_range(power, text):
    assert pictures._size_range(power) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (4.26, "4.3 s"), (59, "59 s"), (90, "1.5 min"), (46_800, "13 h"), (86_400, "1.0 d")],
)
def test_durations_are_short(seconds, text):
    assert pictures.short_duration(seconds) == text


def test_each_run_has_a_bar_in_each_range_of_slowdowns():
    # bounded slowdowns of the three jobs: 1, 2.8 and 1
    (axes,) = pictures.slowdown_buckets([run("a"), run("b")]).axes
    heights = [[bar.get_height() for bar in bars] for bars in axes.containers]
    assert heights == [pytest.approx([200 / 3, 0, 100 / 3, 0, 0, 0])] * 2
    assert axes.get_legend_handles_labels()[1] == ["a", "b"]


def test_a_job_in_the_reservation_timeline_waits_runs_and_leaves_the_rest_of_its_walltime():
    jobs = only_ran(THREE)
    jobs.walltime = np.array([150.0, math.inf, 5.0])
    axes = timelines.reservation_timeline([run(jobs=jobs)]).axes[0]
    waits, runs, left = (
        [tuple(path.vertices[[0, 1], 0].tolist()) for path in bars.get_paths()] for bars in axes.collections
    )
    assert waits == [(10, 10), (20, 110), (30, 30)]
    assert runs == [(10, 110), (110, 160), (30, 31)]
    assert left == [(110, 160), (160, 160), (31, 35)]


def test_power_and_host_states_are_averages_over_time():
    top, bottom = timelines.hosts_and_power([run()], None).axes
    assert top.get_ylim() == (0, 4)
    (everything,) = bottom.collections
    assert everything.get_paths()[0].vertices[:, 1].max() == pytest.approx(2.0)  # 400 kJ in 200 s


def test_all_pictures_share_one_clock():
    late = job_table((0.0, 1, 0.0, 10_000.0, "0"))
    figure = timelines.reservation_timeline([run("a"), run("b", late)])
    assert figure.axes[0].get_xlim() == figure.axes[1].get_xlim()
    assert figure.axes[0].get_xlim()[1] == pytest.approx(10_100 / 3600)
    assert pictures.load_over_time([run("a"), run("b", late)]).axes[1].get_xlabel() == "simulated time (hours)"
