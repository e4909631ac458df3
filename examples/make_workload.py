"""Make a workload and a platform, write them as files that Batsim reads, and simulate them."""

from pathlib import Path

import numpy as np

import decision as d
from decision.files import write_platform, write_workload
from decision.files.generate.lublin import lublin_workload
from decision.files.generate.platforms import simple_cluster
from decision.policies.runtimes.walltimes import apply_estimates

FOLDER = Path("out/make_workload")

rng = np.random.default_rng(1)
workload = apply_estimates(lublin_workload(rng, 500, 64), "tsafrir", rng)  # walltimes as users ask for them
write_workload(FOLDER / "lublin.json", workload)
write_platform(FOLDER / "cluster64.xml", simple_cluster(64))

result = d.simulate(FOLDER / "cluster64.xml", FOLDER / "lublin.json", "easy", energy=True)
summary = result.summary()
print(f"{summary.jobs} jobs, mean wait {summary.wait:,.0f} s, {summary.energy / 3.6e6:,.0f} kWh")
result.write(FOLDER)
print(f"Batsim's output files are in {FOLDER}")
