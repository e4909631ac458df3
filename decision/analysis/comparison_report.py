"""The page of a comparison: pictures, tables, how it was run, what its figures mean."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from decision.formats.files import write_files

from .comparison import ALL, Comparison, Row
from .comparison_files import cells, heading, notes, read_comparison, tables
from .comparison_picture import draw_rows
from .measures import METRICS, definition, symbols
from .page import REPORT, bullets, cell, page, picture, prose, section, table
from .picture_file import drawn

_HEADERS = ("policy", "IQM", "95 %", "P(better)", "95 %", "")
_PICTURES = (
    "pictures: dots are the tables' figures, bars their intervals; green: better than the baseline, red: worse, "
    "grey: not told apart"
)


def write_comparison_report(folder: Path) -> Path:
    """Write ``report.html`` of the comparison in a folder, beside it.

    Raises:
        InputError: if there is no comparison.
        ConfigError: if the page cannot be written.
    """
    comparison = read_comparison(folder)
    write_files({folder / REPORT: [page(_title(comparison), _parts(comparison))]})
    return folder / REPORT


def _title(comparison: Comparison) -> str:
    names = dict.fromkeys(row.contender for row in comparison.rows)
    return f"{len(names)} policies compared, baseline {comparison.baseline}"


def _parts(comparison: Comparison) -> Iterator[str]:
    for number, (metric, workload, rows) in enumerate(tables(comparison)):
        yield section(f"table-{number}", heading(metric, workload), _compared(metric, workload, rows))
    yield section("reading", "How to read it", bullets([*notes(comparison), _PICTURES]))
    yield section("setup", "How it was run", _words(comparison.setup.items()))
    metrics = dict.fromkeys(row.metric for row in comparison.rows)
    yield section("metrics", "What the metrics are", _definitions(list(metrics)))


def _compared(metric: str, workload: str, rows: Sequence[Row]) -> str:
    unit = "multiple of the baseline's" if workload == ALL else METRICS[metric].unit
    image = picture(f"{metric} on {workload}", ".svg", drawn(draw_rows(rows, unit), ".svg"))
    return f"{image}\n{table(_HEADERS, (map(cell, cells(row)) for row in rows))}"


def _words(facts: Iterable[tuple[str, str]]) -> str:
    return table((), (map(cell, fact) for fact in facts), kind="words")


def _definitions(metrics: Sequence[str]) -> str:
    rows = (
        (cell(name), cell(METRICS[name].unit), cell(METRICS[name].summary), f"<td>{prose(definition(name))}</td>")
        for name in metrics
    )
    listed = table(("metric", "unit", "what it is", "definition"), rows, kind="words")
    return f'{listed}\n<p class="note">{prose(symbols())}</p>'
