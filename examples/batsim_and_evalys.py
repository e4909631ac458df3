"""Run a policy, train one for a moment, let both decide for a Batsim, and analyse with evalys. Needs `learn`, `evalys`.

Beside `decision batsim` in Batsim's place; BATSIM=batsim in the environment takes the real one.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import decision as d
from decision.files import write_platform, write_workload
from decision.files.generate.lublin import lublin_workload
from decision.files.generate.platforms import simple_cluster
from decision.policies.runtimes.walltimes import apply_estimates

FOLDER = Path("out/batsim_and_evalys")
DECISION = Path(sys.executable).with_name("decision")
BATSIM = os.environ.get("BATSIM", str(Path(sys.executable).with_name("decision-batsim")))

platform, workload = FOLDER / "cluster32.xml", FOLDER / "lublin.json"
write_platform(platform, simple_cluster(32))
rng = np.random.default_rng(3)
write_workload(workload, apply_estimates(lublin_workload(rng, 60, 32), "tsafrir", rng))  # with walltimes, as users ask

# 1,024 steps take some seconds and teach nothing: see docs/guide/train.md
checkpoint = d.train(
    "dbf",
    platform,
    workload,
    FOLDER / "training",
    steps=1024,
    changes={"learn.envs": 8, "learn.threads": 1, "env.jobs": 30},
    resume=(FOLDER / "training").exists(),
)
for name, policy in (("easy", "easy"), ("trained", str(checkpoint))):
    run = [DECISION, "run", "-p", platform, "-w", workload, "--policy", policy, "--force", "-o", FOLDER / name]
    subprocess.run([*run, "--engine", "batsim", "--batsim", BATSIM], check=True, stdout=subprocess.DEVNULL)
    result = d.read_run(FOLDER / name)  # what Batsim has written
    inside = d.simulate(platform, workload, policy)  # the same without a Batsim
    jobset = result.to_evalys().jobs  # evalys.jobset.JobSet, without a file between
    print(
        f"{name}: mean wait {result.summary().wait:,.0f} s, inside {inside.summary().wait:,.0f} s; "
        f"evalys: {jobset.mean_utilisation():.2f} of {jobset.MaxProcs} hosts busy"
    )
pictures = [DECISION, "report", "evalys", FOLDER / "easy", FOLDER / "trained", "-o", FOLDER / "evalys"]
subprocess.run(pictures, check=True)
