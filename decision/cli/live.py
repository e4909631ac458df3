"""A running simulation in the terminal: clock, queue, host map, power.

Rich and NumPy are imported with it; commands ask for it when there is something to draw.
"""

import time
from collections import Counter
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from decision.experiments.folder import HOST_LETTERS
from decision.files.outputs_read import Status
from decision.model.record import HostState

_LOOKS = {  # colour, and a sign that does without it
    HostState.COMPUTING: ("blue", "■"),
    HostState.IDLE: ("yellow", "□"),
    HostState.SLEEPING: ("bright_black", "·"),
    HostState.SWITCHING_ON: ("red", "▲"),
    HostState.SWITCHING_OFF: ("magenta", "▼"),
    HostState.UNAVAILABLE: ("white", "x"),
}
_BARS = " ▁▂▃▄▅▆▇█"
_MOST_CELLS = 1024  # larger clusters: a cell is several hosts
_SILENT = 10.0  # seconds without an update after which a run seems dead


def frame(status: Status, queue: Sequence[int], width: int) -> RenderableType:
    """One picture of a run.

    Args:
        status: its progress.
        queue: how many jobs waited at the last updates, the latest last.
        width: columns of the terminal.
    """
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim")
    facts.add_column()
    for name, value in _facts(status):
        facts.add_row(name, value)
    room = max(16, width - 4)
    facts.add_row("queue", _sparkline(queue, room - 12))
    return Panel(Group(facts, Text(), _host_map(status.hosts, room), _legend(status.hosts)), title=_title(status))


def _title(status: Status) -> str:
    silent = time.time() - status.written
    return status.policy if silent < _SILENT else f"{status.policy}: no update for {silent:,.0f} s"


def _facts(status: Status) -> list[tuple[str, str]]:
    over = status.submitted - status.waiting - status.running
    power = "unknown" if status.watts is None else f"{status.watts / 1e3:,.2f} kW with busy hosts at full load"
    return [
        ("clock", _clock(status.now)),
        ("jobs", f"{status.submitted:,} of {status.jobs:,} submitted, {over:,} ended"),
        ("", f"{status.waiting:,} waiting, {status.running:,} running"),
        ("power", power),
    ]


def _clock(seconds: float) -> str:
    days, rest = divmod(int(seconds), 86_400)
    return f"{days} d {rest // 3600:02}:{rest % 3600 // 60:02}:{rest % 60:02}  ({seconds:,.0f} s)"


def _sparkline(values: Sequence[int], width: int) -> str:
    shown = values[-width:]
    top = max([1, *shown])
    return "".join(_BARS[-(-value * (len(_BARS) - 1) // top)] for value in shown)


def _host_map(hosts: str, width: int) -> Text:
    """A cell for each host, or for the state of most of several."""
    each = _hosts_in_a_cell(hosts)
    cells = [Counter(hosts[i : i + each]).most_common(1)[0][0] for i in range(0, len(hosts), each)]
    across = next((columns for columns in (64, 32, 16) if columns <= width), width)
    text = Text()
    for at, letter in enumerate(cells):
        if at and at % across == 0:
            text.append("\n")
        color, sign = _LOOKS[_state(letter)]
        text.append(sign, style=color)
    return text


def _hosts_in_a_cell(hosts: str) -> int:
    return -(-len(hosts) // _MOST_CELLS)


def _legend(hosts: str) -> Text:
    text = Text()
    for letter, count in sorted(Counter(hosts).items(), key=lambda item: -item[1]):
        state = _state(letter)
        color, sign = _LOOKS[state]
        text.append(f"{sign} ", style=color).append(f"{count:,} {state.name.lower().replace('_', ' ')}   ")
    if (each := _hosts_in_a_cell(hosts)) > 1:
        text.append(f"\na cell: the state of most of {each:,} hosts", style="dim")
    return text


def _state(letter: str) -> HostState:
    return HostState(HOST_LETTERS.index(letter))
