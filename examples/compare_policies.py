"""Compare policies on random parts of a workload: interquartile means and 95 % intervals, as tables and as files."""

from pathlib import Path

import decision as d

FOLDER = Path("out/compare_policies")  # finished runs are cached here; with more windows only new runs are done

result = d.compare(
    "taurus",
    "taurus_week",
    ["easy", "conservative", "saf+easy"],
    metrics=["bounded_slowdown", "wait"],
    windows=10,
    length=200,
    folder=FOLDER,
)
print(result.table.to_string(index=False))
result.write(FOLDER)
print(f"report.html, comparison.csv and more are in {FOLDER}")
