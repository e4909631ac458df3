"""What several commands print: tables that fit the terminal, or one JSON document in their place."""

import json
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table as RichTable

from decision.model.table import Table

from .terminal import is_uncut, note, page_width, say, stdout

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from decision.batsim.conversation import Conversation, Replay
    from decision.experiments.audit import Standing
    from decision.experiments.compare import PredictionsWorth
    from decision.experiments.comparison import PolicyComparison
    from decision.experiments.metric_list import Summary
    from decision.model.platform import Platform
    from decision.model.workload import Workload

# Tables that fit where they are printed: no figure is cut, and each row says what it is of.

_LEAST_KEY, _USUAL_KEY = 5, 12  # columns of a long name: as few as they may be, and where there is room
_LEAST_WORDS = 20  # columns of text that is broken between words


class FittedTable(RichTable):
    """A table that becomes several, one below the other, where it is too wide; each begins with the columns of names.

    Names that are too long are broken, texts are broken between words, and figures stay whole as long as a name and one
    figure fit side by side. A pipe takes tables of any width, but long texts are broken there, too.

    Args:
        names: columns at the left that say what a row is of.
        plain: whether it is a list of facts: no line, no header.
        settings: of `rich.table.Table`.
    """

    def __init__(self, *, names: int = 1, plain: bool = False, **settings: Any) -> None:
        look: dict[str, Any] = {"box": box.SIMPLE_HEAD}
        if plain:
            look = {"box": None, "show_header": False, "padding": (0, 2, 0, 0)}
        super().__init__(pad_edge=False, title_justify="left", caption_justify="left", **look, **settings)
        self._names, self._plain = names, plain

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if not self.columns:
            return
        room = options.max_width
        wanted = []  # the longest line of each column's texts
        for column in self.columns:
            lines = (line for text in (column.header, *column.cells) for line in str(text).split("\n"))
            wanted.append(max(map(cell_len, lines), default=0))
        if is_uncut(room):
            # One table, its texts broken so that it is no wider than a page if that can be.
            texts = [n for n in range(self._names, len(wanted)) if not self.columns[n].no_wrap]
            least = [min(wanted[n], 2 * _LEAST_WORDS) if n in texts else wanted[n] for n in range(len(wanted))]
            spare = page_width() - self._between(len(wanted))
            whole = self._part(range(len(wanted)), _grown(least, wanted, spare))
            whole.title, whole.caption = self.title, self.caption
            yield from RichTable.__rich_console__(whole, console, options)
            return
        least = self._least(wanted, room)
        names = list(range(min(self._names, len(least))))
        parts = [list(names)]  # the columns that stand side by side
        for n in range(len(names), len(least)):
            width = sum(least[m] for m in parts[-1]) + least[n] + self._between(len(parts[-1]) + 1)
            if len(parts[-1]) > len(names) and width > room:
                parts.append(list(names))
            parts[-1].append(n)
        for at, part in enumerate(parts):
            widths = _grown([least[n] for n in part], [wanted[n] for n in part], room - self._between(len(part)))
            part_table = self._part(part, widths)
            part_table.title = self.title if at == 0 else None
            part_table.caption = self.caption if at == len(parts) - 1 else None
            yield from RichTable.__rich_console__(part_table, console, options)

    def _least(self, wanted: list[int], room: int) -> list[int]:
        """How few columns of characters each column may have."""
        names = range(min(self._names, len(wanted)))
        others = [n for n in range(len(wanted)) if n not in names]
        least = [wanted[n] if self.columns[n].no_wrap else min(wanted[n], _LEAST_WORDS) for n in range(len(wanted))]
        for n in names:
            least[n] = min(wanted[n], _USUAL_KEY)
        widest = max((least[n] for n in others), default=0)
        for n in names:  # the widest figure beside them
            spare = room - self._between(len(names) + 1) - widest - sum(least[m] for m in names if m != n)
            least[n] = max(min(least[n], spare), min(wanted[n], _LEAST_KEY))
        most = max(room - self._between(len(names) + 1) - sum(least[n] for n in names), 1)
        for n in others:
            least[n] = min(least[n], most)
        return least

    def _between(self, columns: int) -> int:
        """Characters that are not the columns' own."""
        return 2 * (columns - 1) if self._plain else 3 * columns - 1

    def _part(self, which: Sequence[int], widths: Sequence[int]) -> RichTable:
        """A table of these columns."""
        table = RichTable(box=self.box, pad_edge=False, show_header=self.show_header, padding=self.padding)
        table.title_justify, table.caption_justify = self.title_justify, self.caption_justify
        table.collapse_padding = self.collapse_padding
        for n, width in zip(which, widths, strict=True):
            kind = self.columns[n]
            table.add_column(kind.header, justify=kind.justify, style=kind.style, overflow="fold", width=width)
        cells = [list(self.columns[n].cells) for n in which]
        for row in zip(*cells, strict=True):
            table.add_row(*row)
        return table


def _grown(least: Sequence[int], wanted: Sequence[int], room: int) -> list[int]:
    """Widths for columns that may have `room` together: names first, and what is left to texts."""
    widths, spare = list(least), room - sum(least)
    for n, want in enumerate(wanted):
        more = max(0, min(want - widths[n], spare))
        widths[n], spare = widths[n] + more, spare - more
    return widths


def print_json(document: Any) -> None:
    """Print a document of structs, mappings, sequences, arrays and numbers; numbers that are not finite are null."""
    import msgspec

    from decision.files.text import json_bytes

    text = msgspec.json.format(json_bytes(document, enc_hook=_plain), indent=2).decode()
    try:
        text.encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        text = re.sub(r"[^\x00-\x7f]+", lambda found: json.dumps(found[0])[1:-1], text)
    click.echo(text)


def _plain(value: Any) -> Any:
    """Numpy's arrays and numbers as Python's; anything else as text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def fitted_table(table: Table, caption: str | None = None, names: int = 1) -> FittedTable:
    """A table of texts as a terminal shows it; its columns of figures are aligned to the right.

    Args:
        table: the texts.
        caption: below it.
        names: columns at the left that say what a row is of.
    """
    shown = FittedTable(title=table.title or None, caption=caption, names=names)
    for header in table.columns:
        right = header.startswith(">")
        shown.add_column(header.removeprefix(">"), justify="right" if right else "left", no_wrap=right)
    for row in table.rows:
        shown.add_row(*row)
    return shown


def print_table(table: Table, caption: str | None = None, names: int = 1) -> None:
    """Print a table; arguments as of `fitted_table`."""
    stdout().print(fitted_table(table, caption, names))


def print_facts(facts: Iterable[tuple[str, str]], figures: bool = False) -> None:
    """Print a list of facts, a name and a text each; where these are figures, aligned to the right."""
    shown = FittedTable(plain=True)
    shown.add_column(style="bold", no_wrap=True)
    shown.add_column(justify="right" if figures else "left", overflow="fold")
    for fact in facts:
        shown.add_row(*fact)
    stdout().print(shown, highlight=False)


def number(value: float) -> str:
    """A number with thousands apart and as many decimals as say something; a dash for nan."""
    if math.isnan(value):
        return "-"
    digits = next(digits for digits, least in enumerate((1000, 100, 0)) if abs(value) >= least)
    return f"{value:,.{digits}f}"


def count(number: int, what: str) -> str:
    """A number with its noun: ``1 job``, ``10,000 jobs``."""
    return f"{number:,} {what}{'s' * (number != 1)}"


_UNITS = ((86_400.0, "d"), (3600.0, "h"), (60.0, "min"))


def duration_short(seconds: float) -> str:
    """A time with its usual unit: ``12 s``, ``5.3 min``, ``2.1 d``; a dash for nan."""
    if math.isnan(seconds):
        return "-"
    unit, name = next(((unit, name) for unit, name in _UNITS if seconds >= unit), (1.0, "s"))
    return f"{number_short(seconds / unit)} {name}"


def number_short(value: float) -> str:
    """A number with three significant digits or all those before the point; a dash for nan."""
    if math.isnan(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def as_percent(share: float) -> str:
    """A share in percent; a dash for nan."""
    return "-" if math.isnan(share) else f"{100 * share:.1f} %"


# --- Runs and policies ----------------------------------------------------------------------------------------------


def print_by_policy(headers: Iterable[str], rows: Mapping[str, Iterable[str]], caption: str | None = None) -> None:
    """Print figures, a row for each policy; nothing where there are no rows."""
    if rows:
        columns = ("policy", *(f">{header}" for header in headers))
        print_table(Table("", columns, [(policy, *cells) for policy, cells in rows.items()]), caption)


_ACROSS = 4  # metrics in a table, so that it fits a terminal


def print_comparison(comparison: "PolicyComparison") -> None:
    """One table per metric and workload, then how to read them; of whole workloads above them all metrics at a glance.

    Single runs have that alone.
    """
    from decision.experiments.metric_list import metric_named
    from decision.report.comparison import at_a_glance, metric_tables, notes

    for workload, metrics, glance in at_a_glance(comparison) if comparison.judged or comparison.single else ():
        say(f"{workload}: one run" if comparison.single else workload)
        for begin in range(0, len(metrics), _ACROSS):
            shown = slice(begin, begin + _ACROSS)
            heads = [f"{name}\n{metric_named(name).unit}" for name in metrics[shown]]
            print_by_policy(heads, {policy: figures[shown] for policy, *figures in glance})
    for table in metric_tables(comparison):
        print_table(table)
    stdout().print("\n".join(notes(comparison)), highlight=False)


def print_worth(rows: "Sequence[PredictionsWorth]") -> None:
    """What predictions are worth: one row per workload, policy and metric; nothing where there are none."""
    body = []
    for row in rows:
        recovered = "-" if math.isnan(row.recovered) else f"{100 * row.recovered:.0f} %"
        numbers = map(number, (row.walltimes, row.predictions, row.perfect))
        body.append((row.workload, row.policy, row.metric, *numbers, recovered))
    if body:
        columns = ("workload", "policy", "metric", ">walltimes", ">predictions", ">perfect", ">recovered")
        print_table(Table("", columns, body), names=3)


def print_logs(platform: "Platform", workloads: Sequence["Workload"], policies: Iterable[str]) -> None:
    """Before they run: what was left out of each workload, whether it fits the platform, and what no run looks at."""
    print_dropped(workloads)
    print_machines(platform, workloads)
    print_unsimulated(workloads, policies)


def print_dropped(workloads: Iterable["Workload"]) -> None:
    """What was left out of each file, and why."""
    from decision.model.reshape import dropped_text

    for workload in workloads:
        if workload.dropped:
            note(f"{workload.path}: left out: {dropped_text(workload)}")
        for remark in workload.notes:
            note(f"{workload.path}: {remark}")


def print_unsimulated(workloads: Iterable["Workload"], policies: Iterable[str]) -> None:
    """What each log says that no run looks at; nothing where a policy `slurm` has a whole case of its own."""
    from decision.experiments.audit import unsimulated
    from decision.policies.traits import read_spec

    if any(read_spec(policy).name == "slurm" for policy in policies):
        return
    for workload in workloads:
        if found := unsimulated(workload):
            note(f"{workload.path}: not simulated: {'; '.join(each.brief() for each in found)}")


def print_machines(platform: "Platform", workloads: Iterable["Workload"]) -> None:
    """For each workload without jobs, of a larger machine than the platform, or, if it is a log, of a smaller one."""
    from decision.files.workload import is_log

    hosts = len(platform.hosts)
    for workload in workloads:
        if not workload.jobs:
            note(f"{workload.path}: there are no jobs")
        if workload.nb_res > hosts or (is_log(workload) and workload.nb_res != hosts):
            origin = "the log of a machine of" if is_log(workload) else "made for"
            advice = f"; --nodes {hosts:d} leaves out larger jobs" if workload.nb_res > hosts else ""
            has = f"{platform.path} has {hosts:,}"
            note(f"{workload.path}: {origin} {count(workload.nb_res, 'host')}, and {has}{advice}")


def warn_of_seen_jobs(policies: Iterable[str], workloads: Sequence["Workload"]) -> None:
    """Say which policies are judged on jobs that they were learned from."""
    from decision.rl.learning.checkpoint import seen_text

    for policy in policies:
        for workload in workloads:
            if text := seen_text(policy, workload):
                note(f"warning: {text}; that says little of others (--select chooses jobs)")


# --- Conversations --------------------------------------------------------------------------------------------------


def print_conversation(conversation: "Conversation") -> None:
    """How much was answered, and how fast."""
    say(
        f"answered {conversation.messages:,} messages: {conversation.deciding:.3f} s of scheduling, "
        f"{conversation.total:.3f} s in total"
    )


def print_replay(replay: "Replay") -> None:
    """Whether a policy decides as was recorded."""
    if replay.difference is None:
        say(f"the same decisions in all {replay.messages:,} messages")
        return
    first = replay.difference
    lines = [f"the same decisions in {replay.messages:,} messages; then, at t={first.now:g} s (line {first.line}):"]
    lines += [f"  recorded: {event}" for event in first.recorded] or ["  recorded: nothing more"]
    lines += [f"  decided:  {event}" for event in first.decided] or ["  decided:  nothing more"]
    say("\n".join(lines))


# The figures of runs: a table or two for each kind of them, a row for each policy; or data in their place.


class _Figures(NamedTuple):
    """A table of figures of runs, a row for each policy."""

    columns: Sequence[tuple[str, str, float]]  # header, field of `Summary`, by how much it is multiplied
    notes: str
    of: Sequence[str] = ()  # fields of which a policy has one that is known, or it has no row

    def rows(self, summaries: Mapping[str, "Summary"]) -> dict[str, list[str]]:
        """The cells of each policy's row."""
        rows: dict[str, list[str]] = {}
        for policy, summary in summaries.items():
            if self.of and all(math.isnan(summary[name]) for name in self.of):
                continue
            cells = rows[policy] = []
            for _, name, scale in self.columns:
                value = summary[name]
                nothing = name == "lost_work" and not value  # a dash: no job was begun in vain
                cells.append("-" if nothing else f"{value:,}" if isinstance(value, int) else number(scale * value))
        return rows


_OF_ALL = (
    _Figures(
        (
            ("makespan\ns", "makespan", 1.0),
            ("mean wait\ns", "wait", 1.0),
            ("max wait\ns", "max_wait", 1.0),
            ("bounded\nslowdown", "bounded_slowdown", 1.0),
            ("util.\n%", "utilization", 100.0),
            ("energy\nMJ", "energy", 1e-6),
        ),
        "makespan: from the first submission to the last end\n"
        "bounded slowdown: mean; runtimes under 10 s count as 10 s",
    ),
    _Figures(
        (
            ("p95 wait\ns", "p95_wait", 1.0),
            ("p99 wait\ns", "p99_wait", 1.0),
            ("late starts\njobs", "late_starts", 1.0),
            ("util. until\nlast arrival, %", "arrival_utilization", 100.0),
        ),
        "p95, p99: percentiles of the waiting times\nlate starts: after the last arrival, when no other jobs compete",
    ),
)
_OF_SOME = (
    _Figures(
        (("energy waste\nMJ", "energy_waste", 1e-6), ("waste bound\nMJ", "waste_bound", 1e-6)),
        "energy waste: of idle hosts and of switches\n"
        "waste bound: the least of any shutdown with the same starts, all being known before",
        ("waste_bound",),
    ),
    _Figures(
        (("energy\nMJ", "energy", 1e-6), ("carbon\nkg", "carbon", 1e-3), ("cost", "cost", 1.0)),
        "carbon, cost: of the energy, by what events say of a kWh",
        ("carbon", "cost"),
    ),
    _Figures(
        (
            ("value", "value", 1.0),
            ("of submitted\n%", "value_share", 100.0),
            ("deadlines\nmissed", "violations", 1.0),
            ("lost work\nhost-hours", "lost_work", 1 / 3600),
            ("grid power\nhost-hours", "grid", 1 / 3600),
        ),
        "value: of the jobs that ended successfully\ndeadlines missed: also by jobs that were rejected\n"
        "lost work: done in vain, by jobs that were cut, killed or begun again\n"
        "grid power: computing beyond supply and battery",
    ),
    _Figures(
        (("gap of\nwindows, %", "window_gap", 100.0),),
        "gap of windows: hops above a lower bound, mean over windows",
        ("window_gap",),
    ),
)


def print_summaries(summaries: Mapping[str, "Summary"], beside: "Standing | None" = None) -> None:
    """One row per policy in each of two tables: the usual figures, and what the means do not tell; then what some have.

    `beside` says how far what really happened, if it is among them, can be compared with the others.
    """
    for figures in _OF_ALL:
        print_by_policy([head for head, _, _ in figures.columns], figures.rows(summaries), figures.notes)
    for figures in _OF_SOME:
        rows = figures.rows(summaries)
        if any(cell != "-" for cells in rows.values() for cell in cells):
            print_by_policy([head for head, _, _ in figures.columns], rows, figures.notes)
    if beside is not None:
        from decision.experiments.audit import standing_text

        say(standing_text(beside))


def summary_rows(summaries: Mapping[str, "Summary"]) -> list[dict[str, Any]]:
    """The rows of `print_summaries` as data."""
    return [{"policy": policy, **summary.with_old_names()} for policy, summary in summaries.items()]


def summary_columns(summaries: Mapping[str, "Summary"]) -> dict[str, dict[str, "NDArray[np.float64]"]]:
    """Of each policy the figures of its one run, as `decision.rl.envs.write_metrics` takes them."""
    import numpy as np

    rows = {policy: summary.with_old_names() for policy, summary in summaries.items()}
    return {policy: {name: np.array([float(value)]) for name, value in row.items()} for policy, row in rows.items()}
