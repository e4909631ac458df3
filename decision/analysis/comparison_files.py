"""The files of a comparison: CSV for programs, Markdown for people, and JSON, from which the report is drawn."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from decision.formats.files import csv_text, read_bytes, write_files
from decision.model.errors import InputError

from .comparison import MeasuredRun, PolicyComparison, Row
from .comparison_text import markdown
from .metric_list import METRICS
from .statistics import Estimate

CONTENTS = "comparison.json"  # what `read_comparison` reads


def write_comparison(folder: Path, comparison: PolicyComparison) -> list[Path]:
    """Write ``comparison.csv`` (the rows), ``runs.csv`` (each run), ``comparison.md`` and ``comparison.json``.

    Raises:
        ConfigError: if they cannot be written; none is then.
    """
    contents = {
        folder / "comparison.csv": csv_text(map(row_values, comparison.rows)),
        folder / "runs.csv": csv_text(map(_run_cells, comparison.outcomes)),
        folder / "comparison.md": markdown(comparison),
        folder / CONTENTS: msgspec.json.encode(comparison).decode(),
    }
    write_files({path: [text.encode()] for path, text in contents.items()})
    return list(contents)


def read_comparison(folder: Path) -> PolicyComparison:
    """What `write_comparison` wrote.

    Raises:
        InputError: if it cannot be read.
    """
    path = folder / CONTENTS
    try:
        return msgspec.json.decode(read_bytes(path), type=PolicyComparison)
    except msgspec.MsgspecError as error:
        raise InputError(f"{path}: not a comparison ({error}); run decision compare again") from None


def row_values(row: Row) -> Mapping[str, object]:
    """A row of ``comparison.csv``."""
    return {
        "metric": row.metric,
        "workload": row.workload,
        "policy": row.contender,
        "runs": row.runs,
        **_named("estimate", row.score),
        **(_named("change", row.change) if row.improvement is None else _named("improvement", row.improvement)),
        "verdict": row.verdict,
        "blocks": row.blocks,
    }


def _named(name: str, found: Estimate | None) -> Mapping[str, float | None]:
    values = (None, None, None) if found is None else found
    return dict(zip((name, f"{name}_low", f"{name}_high"), values, strict=True))


def _run_cells(outcome: MeasuredRun) -> Mapping[str, object]:
    return {
        "workload": outcome.workload,
        "policy": outcome.contender,
        "first_job": outcome.first_job,
        "copy": outcome.copy,
        "seed": outcome.seed,
        **{name: outcome.metrics.get(name) for name in METRICS},
    }
