"""Pictures of runs side by side over one clock: load, reservations, host states and power."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from decision.model.platform import Platform
from decision.model.record import Floats, HostState

from ..energy import energy_over_time
from ..metrics import utilization
from ..runs import PIECES, NamedRun, Steps, averaged, last_end, queue_over_time, utilization_over_time
from .axes import AxisClock, clock
from .figures import GREY, explain, looks, name_panel, new_figure, outer_legend, panels_in_row, side_by_side, styled
from .pictures import Picture, facts_of, listed

_LONG_QUEUE = 10.0  # the longest queue of all runs over that of one, from which on the scale is logarithmic


def clock_of(runs: Sequence[NamedRun]) -> AxisClock:
    """The clock that suits all runs; with dates where all began on the same."""
    begins, firsts = ({run.clock for run in runs}, {run.first for run in runs})
    return clock(last_end(runs), begins.pop() if len(begins) == 1 else None, firsts.pop() if len(firsts) == 1 else 0.0)


# --- Load -----------------------------------------------------------------------------------------------------------


@styled
def load_over_time(runs: Sequence[NamedRun]) -> Picture:
    """Utilization and queue, two panels for each run."""
    edges = np.linspace(0.0, last_end(runs), PIECES + 1)
    busy = [100 * averaged(utilization_over_time(run.jobs, run.record.nb_hosts), edges) for run in runs]
    queues = [queue_over_time(run.jobs) for run in runs]
    waiting = [averaged(queue, edges) for queue in queues]
    peaks = [int(queue.values.max(initial=0)) for queue in queues]
    across = panels_in_row(len(runs), 28) if len(runs) > 4 else 1
    down = -(-len(runs) // across)
    figure = new_figure(6 + 8.5 * down)
    grid = figure.subplots(down, 2 * across, squeeze=False, sharex=True)
    time = clock_of(runs)
    unit, label = time.unit, time.label
    for at, (run, look) in enumerate(zip(runs, looks(), strict=False)):
        left, right = grid[at // across, 2 * (at % across) : 2 * (at % across) + 2]
        _draw_load(left, edges / unit, busy, at, look.color)
        _draw_load(right, edges / unit, waiting, at, look.color)
        time.show(left)
        left.set_ylim(0, 105)
        left.set_ylabel("busy hosts (%)", fontsize="small")
        _scale_queue(right, peaks)
        name_panel(left, run.name, 2 * across)
        right.set_title(f"at most {peaks[at]:,} waiting", fontsize="small")
        if at + across >= len(runs):
            for axes in (left, right):
                axes.tick_params(labelbottom=True)
    for unused in grid.flat[2 * len(runs) :]:
        unused.remove()
    band = "; grey: from the lowest to the highest of all runs" if len(runs) > 1 else ""
    explain(figure, f"{label}\naverages over {PIECES}ths of the time{band}")
    return Picture(
        figure,
        f"Share of the hosts that run jobs and number of waiting jobs over the {label}, averaged over {PIECES}ths of "
        f"the time{band}. Above each queue stands its longest length.",
        f"Utilization and queue over time of {listed([run.name for run in runs])}. "
        + facts_of("Mean utilization", {run.name: f"{utilization(run.jobs, run.record.nb_hosts):.0%}" for run in runs})
        + " "
        + facts_of("Most waiting jobs", {run.name: f"{peak:,}" for run, peak in zip(runs, peaks, strict=True)}),
    )


def _draw_load(axes: Axes, edges: Floats, every: Sequence[Floats], own: int, color: str) -> None:
    """A run's averages between the edges, before the band of all runs."""
    if len(every) > 1:
        low, high = np.min(every, axis=0), np.max(every, axis=0)
        axes.fill_between(edges, _closed(low), _closed(high), step="post", color="#e2e2e2", linewidth=0)
    axes.stairs(every[own], edges, color=color, linewidth=0.8)
    axes.set_xlim(0, edges[-1])


def _closed(values: Floats) -> Floats:
    return np.append(values, values[-1])


def _scale_queue(axes: Axes, peaks: Sequence[int]) -> None:
    """One scale for all queues, logarithmic where a linear one would press some flat."""
    top = max(1, *peaks)
    axes.set_ylabel("waiting jobs", fontsize="small")
    if top > _LONG_QUEUE * min(peaks):
        axes.set_yscale("symlog", linthresh=1.0)
        decades = int(np.log10(top)) + 1
        axes.set_yticks([0, *(10**power for power in range(0, decades, -(-decades // 3)))])
        axes.yaxis.set_major_formatter("{x:,.0f}")
        axes.minorticks_off()
        axes.set_ylim(0, 1.5 * top)
    else:
        axes.yaxis.set_major_locator(MaxNLocator(3, integer=True))
        axes.set_ylim(0, 1.05 * top)


# --- Host states and power ------------------------------------------------------------------------------------------

STATE_LOOKS = {
    HostState.COMPUTING: ("#4477aa", ""),
    HostState.IDLE: ("#f0e6b0", ""),
    HostState.SWITCHING_ON: ("#ee6677", "////"),
    HostState.SWITCHING_OFF: ("#aa3377", "\\\\\\\\"),
    HostState.SLEEPING: ("#b5b5b5", "...."),
    HostState.UNAVAILABLE: ("#222222", ""),
}


@styled
def hosts_and_power(runs: Sequence[NamedRun], platform: Platform | None) -> Picture:
    """Hosts by state and the power of all hosts over time, averaged over 200ths of it.

    Args:
        runs: in which energy was simulated.
        platform: what hosts draw; splits the power by state where it is known.
    """
    figure, panels = side_by_side(len(runs), 20, 26, stacked=2)
    across = panels_in_row(len(runs), 20)
    time = clock_of(runs)
    unit, label = time.unit, time.label
    edges = np.linspace(0.0, last_end(runs), PIECES + 1)
    for at, ((top, bottom), run) in enumerate(zip(panels, runs, strict=True)):
        table = run.record.host_states
        end = last_end([run])
        own = np.append(edges[edges < end], end)  # a run ends with its last job
        counts = [averaged(Steps(table.time, table.counts[:, state].astype(float)), own) for state in STATE_LOOKS]
        stack_layers(top, own / unit, counts, list(STATE_LOOKS.values()))
        power = _kilowatts(run, platform, own)
        stack_layers(bottom, own / unit, power, list(STATE_LOOKS.values()) if len(power) > 1 else [(GREY, "")])
        top.set_ylim(0, run.record.nb_hosts)
        top.yaxis.set_major_locator(MaxNLocator(integer=True))
        name_panel(top, f"{run.name}: {run.record.joules / 1e6:,.0f} MJ", across)
        bottom.set_xlim(0, edges[-1] / unit)
        time.show(bottom)
        bottom.set_ylim(bottom=0)
        if at % across == 0:
            top.set_ylabel("hosts")
            bottom.set_ylabel("power (kW)")
    highest = max(bottom.get_ylim()[1] for _, bottom in panels)
    for _, bottom in panels:
        bottom.set_ylim(0, highest)
    explain(figure, f"{label}\naverages over {PIECES}ths of the time")
    split = platform is not None
    handles = [
        Patch(facecolor=color, hatch=hatch, edgecolor="white", label=state.name.lower().replace("_", " "))
        for state, (color, hatch) in STATE_LOOKS.items()
        if any(run.record.host_states.counts[:, state].any() for run in runs)
    ]
    outer_legend(figure, handles if split else [*handles, Patch(color=GREY, label="power of all hosts")])
    return Picture(
        figure,
        f"Hosts by what they do (above) and the power that they draw (below) over the {label}, averaged over "
        f"{PIECES}ths of the time. In the titles: the energy from the first submission to the last end.",
        facts_of("Host states and power over time. Energy", {r.name: f"{r.record.joules / 1e6:,.0f} MJ" for r in runs}),
    )


def _kilowatts(run: NamedRun, platform: Platform | None, edges: Floats) -> list[Floats]:
    """Mean power between the edges (seconds): by state as in the looks, or only of all where no platform is known."""
    energy = run.record.energy
    if platform is not None:
        joules = energy_over_time(run.record, platform, edges)[:, list(STATE_LOOKS)]
    elif energy is not None:
        joules = np.interp(edges, energy.time, np.asarray(energy.energy, float), left=0.0)[:, np.newaxis]
    else:
        joules = np.zeros((len(edges), 1))
    return list(np.diff(joules, axis=0).T / np.diff(edges) / 1e3)


def stack_layers(axes: Axes, edges: Floats, layers: Sequence[Floats], looks: Sequence[tuple[str, str]]) -> None:
    """Layers between the edges, one upon the other; hatching shows in grey what colours show."""
    base = np.zeros(len(edges) - 1)
    for layer, (color, hatch) in zip(layers, looks, strict=True):
        over = base + layer
        axes.fill_between(
            edges,
            _closed(base),
            _closed(over),
            step="post",
            facecolor=color,
            hatch=hatch,
            edgecolor="white",
            linewidth=0,
        )
        base = over
