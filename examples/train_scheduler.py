"""Train deep backfilling for a moment, then use the checkpoint as a policy. Needs the extra `learn`.

10,000 steps take some seconds and teach little; 200,000 or more are needed for a good policy.
"""

from pathlib import Path

import decision as d

FOLDER = Path("out/train_scheduler")

checkpoint = d.train(
    "dbf",
    "cluster256",
    "lublin_256",
    FOLDER,
    steps=10_000,
    changes={"learn.envs": 16, "learn.threads": 1, "env.jobs": 100},
    resume=FOLDER.exists(),
)
for policy in (str(checkpoint), "easy", "dbf"):
    wait = d.simulate("cluster256", "lublin_256", policy).summary().wait
    print(f"{policy}: mean wait {wait:,.0f} s")
