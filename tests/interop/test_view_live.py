"""A run that is watched from outside while it goes."""

import threading
import time

from click.testing import CliRunner

from decision.cli.app import app
from decision.experiments.inputs import Inputs, PolicyChoice, load_inputs
from decision.experiments.run import run_to_folder
from decision.files.outputs_read import read_status

SLOW = """
import time

class Slow:
    def reset(self, platform, seed):
        self.slow = 800

    def decide(self, cluster, plan):
        self.slow -= 1
        time.sleep(0.01 * (self.slow > 0))
        for job in cluster.queue:
            if job.size <= plan.nb_free:
                plan.start(job)
"""


def test_a_run_is_seen_from_its_first_seconds_to_its_end(root, tmp_path):
    (tmp_path / "slow.py").write_text(SLOW)
    workload = root / "workloads" / "taurus_week_flops.json"
    case = load_inputs(Inputs(platform=root / "platforms" / "taurus.xml", workloads=(workload,), energy=True))
    choice = PolicyChoice(policy=f"{tmp_path}/slow.py:Slow")
    folder = tmp_path / "out"
    folder.mkdir()
    run = threading.Thread(target=run_to_folder, args=(case, choice, folder))
    run.start()
    seen = []
    while run.is_alive() and len(seen) < 3:
        status = read_status(folder)
        if status is not None and (not seen or status.now > seen[-1].now):
            seen.append(status)
        time.sleep(0.05)
    result = CliRunner().invoke(app, ["report", "view", str(folder), "--live"])
    run.join()
    assert len(seen) == 3
    for status in seen:
        assert status.jobs == 1500
        assert status.waiting + status.running <= status.submitted <= status.jobs
        assert len(status.hosts) == 16
        assert 16 * 9 < status.watts < 16 * 191
    assert result.exit_code == 0
    assert "mean wait" in result.output  # it went on until there was a result
    assert not (folder / "status.json").exists()
