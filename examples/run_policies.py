"""Run several policies on a shipped cluster and workload, and print what each comes to."""

import decision as d

for policy in ("fcfs", "easy", "conservative", "saf+easy"):
    summary = d.simulate("taurus", "taurus_week", policy).summary()
    print(
        f"{policy:12} mean wait {summary.wait:9,.0f} s, "
        f"mean bounded slowdown {summary.bounded_slowdown:8,.1f}, utilization {summary.utilization:.1%}"
    )
