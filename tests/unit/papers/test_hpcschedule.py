"""Lan et al.'s published program: its rules, worked out by hand, and the figures of its paper."""

import numpy as np
import pytest

from decision.model.errors import InputError
from decision.papers.topology.windows import (
    PUBLISHED_EPOCHS,
    best_of_tree,
    contiguous,
    lowest,
    read_job_list,
    reproduce_hpcschedule,
    simulate_epoch,
)


def test_which_hosts_a_job_gets():
    free = np.array([3, 5, 6, 7, 12, 13, 14, 15, 47])
    assert lowest(free, 3).tolist() == [3, 5, 6]
    assert contiguous(free, 4).tolist() == [12, 13, 14, 15]
    assert contiguous(free, 5).tolist() == [3, 5, 6, 7, 12]
    assert best_of_tree(free, 3).tolist() == [3, 5, 6]  # the first switch is enough
    assert best_of_tree(free, 5).tolist() == [3, 5, 6, 7, 12]  # a whole switch and one of the same pod


def test_all_forty_figures_come_out_to_the_digit(shared):
    jobs = read_job_list(shared / "data" / "hpcschedule_jobs.txt")
    for name, (costs, waits) in PUBLISHED_EPOCHS.items():
        epochs = [simulate_epoch(jobs, epoch, name == "BF") for epoch in range(10)]
        assert tuple(int(epoch.cost) for epoch in epochs) == costs
        assert tuple(int(epoch.wait) for epoch in epochs) == waits


def test_what_the_command_says_is_true(shared):
    findings = reproduce_hpcschedule(shared / "data", window_epochs=2)
    assert "40 of the 40 published figures" in findings.notes
    assert "at the waiting time of FCFS, less than all windows" in findings.notes
    assert "undoing alone gives more" in findings.notes
    costs = [float(row[1].replace(",", "")) for row in findings.tables[2].rows[:-1]]
    assert costs[0] > costs[1] > costs[2] > costs[3] > costs[4] > costs[-1]
    assert findings.tables[0].rows[0][1:5] == ["35,077", "35,077", "93", "93"]


@pytest.mark.parametrize("text", ["1 2 3\n", "no list\n", None])
def test_what_is_no_list_of_jobs_is_refused(tmp_path, text):
    path = tmp_path / "hpcschedule_jobs.txt"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match=r"hpcschedule_jobs\.txt: no list of jobs"):
        read_job_list(path)
