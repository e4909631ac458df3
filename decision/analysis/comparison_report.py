"""The page of a comparison, and its pictures as files."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from decision.formats.files import write_files

from .comparison import ALL, PolicyComparison, Row
from .comparison_files import read_comparison
from .comparison_text import at_a_glance, cells, headers, heading, notes, tables
from .metric_list import METRICS, definition, symbols
from .pages import REPORT, bullets, cell, embedded, fact_table, page, prose, section, table
from .plots.figures import drawn
from .plots.paper import paper
from .plots.results import draw_rows


def write_comparison_report(folder: Path) -> Path:
    """Write ``report.html`` of the comparison in a folder, to the same folder.

    Raises:
        InputError: if the folder has no comparison.
        ConfigError: if the page cannot be written.
    """
    comparison = read_comparison(folder)
    write_files({folder / REPORT: [page(_title(comparison), _parts(comparison))]})
    return folder / REPORT


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
        heads = ("policy", *(f"{name} {METRICS[name].unit}".strip() for name in names))
        yield section(f"all-{workload}", workload, table(heads, (map(cell, row) for row in texts)))
    for number, (metric, workload, rows) in enumerate(drawn_tables(comparison)):
        yield section(f"table-{number}", heading(metric, workload), _compared(metric, workload, rows))
    yield section("reading", "How to read it", bullets(notes(comparison)))
    yield section("setup", "How it was run", fact_table(comparison.setup.items()))
    metrics = dict.fromkeys(row.metric for row in comparison.rows)
    yield section("metrics", "What the metrics are", _definitions(list(metrics)))


def _compared(metric: str, workload: str, rows: Sequence[Row]) -> str:
    picture = embedded(draw_rows(rows, _unit(metric, workload)), ".svg")
    return f"{picture}\n{table(headers(rows), (map(cell, cells(row)) for row in rows))}"


def _definitions(metrics: Sequence[str]) -> str:
    rows = (
        (cell(name), cell(METRICS[name].unit), cell(METRICS[name].summary), f"<td>{prose(definition(name))}</td>")
        for name in metrics
    )
    listed = table(("metric", "unit", "what it is", "definition"), rows, kind="words")
    return f'{listed}\n<p class="note">{prose(symbols())}</p>'
