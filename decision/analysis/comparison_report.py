"""The page of a comparison, and its pictures as files."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from decision.formats.files import write_files
from decision.model.names import without_folders

from .comparison import ALL, PolicyComparison, Row
from .comparison_files import read_comparison, row_values
from .comparison_text import at_a_glance, cells, headers, heading, notes, tables
from .groups import GroupFigures, mean_figures
from .metric_list import METRICS, definition, symbols
from .pages import REPORT, Cell, bullets, embedded, fact_table, group_sections, page, prose, section, table
from .plots.figures import drawn
from .plots.paper import paper
from .plots.results import draw_rows


def write_comparison_report(folder: Path) -> Path:
    """Write ``report.html`` of the comparison in a folder, to the same folder.

    Raises:
        InputError: if the folder has no comparison.
        ConfigError: if the page cannot be written.
    """
    comparison = _with_short_names(read_comparison(folder))
    setup = comparison.setup
    made = page(_title(comparison), _parts(comparison), setup.get("command", ""), setup.get("date", ""))
    write_files({folder / REPORT: [made]})
    return folder / REPORT


def _with_short_names(comparison: PolicyComparison) -> PolicyComparison:
    """The comparison with files in the names of policies without their folders, if that tells all apart."""
    names = {row.contender: without_folders(row.contender) for row in comparison.rows}
    if len(set(names.values())) < len(names):
        return comparison
    rows, outcomes = (
        [replace(each, contender=names.get(each.contender, each.contender)) for each in some]
        for some in (comparison.rows, comparison.outcomes)
    )
    return replace(
        comparison, rows=rows, outcomes=outcomes, baseline=names.get(comparison.baseline, comparison.baseline)
    )


def write_comparison_pictures(folder: Path) -> list[Path]:
    """Write the page's pictures as files, ``METRIC-WORKLOAD`` in the paper's format, to the same folder.

    Raises:
        InputError: if the folder has no comparison.
        ConfigError: if a file cannot be written.
    """
    suffix = paper().suffix
    figures = {
        folder / f"{metric}-{workload.replace('/', '-')}{suffix}": draw_rows(rows, _unit(metric, workload)).figure
        for metric, workload, rows in drawn_tables(read_comparison(folder))
    }
    write_files({path: [drawn(figure, suffix)] for path, figure in figures.items()})
    return list(figures)


def _unit(metric: str, workload: str) -> str:
    return "multiple of the baseline's" if workload == ALL else METRICS[metric].unit


def _title(comparison: PolicyComparison) -> str:
    names = dict.fromkeys(row.contender for row in comparison.rows)
    return f"{len(names)} policies compared, baseline {comparison.baseline}"


def drawn_tables(comparison: PolicyComparison) -> list[tuple[str, str, list[Row]]]:
    """The tables that are drawn: none of single runs, which have no intervals."""
    return [] if comparison.single else tables(comparison)


def _parts(comparison: PolicyComparison) -> Iterator[str]:
    for workload, names, texts in at_a_glance(comparison) if comparison.judged or comparison.single else ():
        heads = ["policy", *(f"{name.replace('_', ' ')} {METRICS[name].unit}".strip() for name in names)]
        values = _glance_values(comparison, workload)
        yield section(f"all-{workload}", workload, table(heads, texts, workload, values=values))
    for number, (metric, workload, rows) in enumerate(drawn_tables(comparison)):
        yield section(f"table-{number}", heading(metric, workload), _compared(metric, workload, rows))
    for workload in dict.fromkeys(run.workload for run in comparison.outcomes):
        yield from group_sections(_groups(comparison, workload), workload)
    yield section("reading", "How to read it", bullets(notes(comparison)))
    yield section("setup", "How it was run", fact_table(comparison.setup.items(), "setup"))
    metrics = dict.fromkeys(row.metric for row in comparison.rows)
    yield section("metrics", "What the metrics are", _definitions(list(metrics)))


def _glance_values(comparison: PolicyComparison, workload: str) -> list[dict[str, object]]:
    """A row for each policy, with its scores."""
    found: dict[str, dict[str, object]] = {}
    for row in comparison.rows:
        if row.workload == workload:
            found.setdefault(row.contender, {"policy": row.contender})[row.metric] = row.score.value
    names = dict.fromkeys(name for values in found.values() for name in values)
    return [{name: values.get(name, "") for name in names} for values in found.values()]


def _groups(comparison: PolicyComparison, workload: str) -> dict[str, list[GroupFigures]]:
    """What groups of jobs had of a workload under each policy that has rows."""
    shown = dict.fromkeys(row.contender for row in comparison.rows)
    runs = [run for run in comparison.outcomes if run.workload == workload and run.groups]
    return {name: mean_figures([run.groups for run in runs if run.contender == name]) for name in shown}


def _compared(metric: str, workload: str, rows: Sequence[Row]) -> str:
    picture = embedded(draw_rows(rows, _unit(metric, workload)), ".svg")
    return f"{picture}\n{table(headers(rows), map(cells, rows), f'{metric}-{workload}', values=map(row_values, rows))}"


def _definitions(metrics: Sequence[str]) -> str:
    rows = [
        (name, METRICS[name].unit, METRICS[name].summary, Cell(definition(name), markup=prose(definition(name))))
        for name in metrics
    ]
    listed = table(("metric", "unit", "what it is", "definition"), rows, "metrics", kind="words")
    return f'{listed}\n<p class="note">{prose(symbols())}</p>'
