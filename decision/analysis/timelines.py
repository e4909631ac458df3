"""Pictures along the clock, for runs side by side: each job's wait, run and reservation; what hosts did and drew."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from decision.model.platform import Platform
from decision.model.record import Floats, HostState

from .energy import energy_over_time
from .plots import clock, side_by_side
from .runs import Run, last_end
from .series import PIECES, Steps, averaged

STATE_COLORS = {
    HostState.COMPUTING: "#4477aa",
    HostState.IDLE: "#ccbb44",
    HostState.SWITCHING_ON: "#ee6677",
    HostState.SWITCHING_OFF: "#aa3377",
    HostState.SLEEPING: "#bbbbbb",
    HostState.UNAVAILABLE: "#222222",
}
_WAITED, _RAN, _LEFT = "#ddaa33", "#4477aa", "#cfdcec"
_TOTAL = "#777777"  # power of all hosts, whatever they do


def reservation_timeline(runs: Sequence[Run]) -> Figure:
    """Each job's wait, run and what its walltime would have left it, in order of submission."""
    figure, panels = side_by_side(len(runs), 6)
    unit, unit_name = clock(runs)
    for (axes,), run in zip(panels, runs, strict=True):
        jobs = run.jobs.take(np.argsort(run.jobs.submit_time, kind="stable"))
        end = jobs.start_time + jobs.runtime
        planned = np.where(np.isfinite(jobs.walltime), jobs.start_time + jobs.walltime, end)
        spans = ((jobs.submit_time, jobs.start_time, _WAITED), (jobs.start_time, end, _RAN), (end, planned, _LEFT))
        for begin, until, color in spans:
            _draw_bars(axes, begin / unit, until / unit, color)
        axes.set_ylim(len(jobs.id) - 0.5, -0.5)
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlim(0, 1.01 * last_end(runs) / unit)
        axes.set_xlabel(f"simulated time ({unit_name})")
        axes.set_ylabel("job, in order of submission")
        axes.set_title(run.name, fontsize=11)
    names = ((_WAITED, "waits"), (_RAN, "runs"), (_LEFT, "reserved by its walltime, not used"))
    handles = [Patch(color=color, label=name) for color, name in names]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure


def _draw_bars(axes: Axes, begin: Floats, end: Floats, color: str) -> None:
    """A horizontal bar for each job, one above the other; one collection, so that thousands are fast."""
    low = np.arange(len(begin)) - 0.5
    x, y = np.stack([begin, end, end, begin], axis=1), np.stack([low, low, low + 1, low + 1], axis=1)
    axes.add_collection(PolyCollection(list(np.stack([x, y], axis=2)), facecolors=color, linewidths=0))


def hosts_and_power(runs: Sequence[Run], platform: Platform | None) -> Figure:
    """Hosts by state and the power of all hosts over time, averaged over 200ths of it.

    Args:
        runs: in which energy was simulated.
        platform: what hosts draw; splits the power by state where it is known.
    """
    figure, panels = side_by_side(len(runs), 5.5, stacked=2)
    unit, unit_name = clock(runs)
    for (top, bottom), run in zip(panels, runs, strict=True):
        table = run.record.host_states
        counts = [averaged(Steps(table.time, table.counts[:, state].astype(float))) for state in STATE_COLORS]
        _stack(top, counts[0].times / unit, [count.values for count in counts], list(STATE_COLORS.values()))
        edges = np.linspace(0.0, float(table.time[-1]), PIECES + 1)
        power = _kilowatts(run, platform, edges)
        _stack(bottom, edges[:-1] / unit, power, list(STATE_COLORS.values()) if len(power) > 1 else [_TOTAL])
        top.set_ylim(0, run.record.nb_hosts)
        top.yaxis.set_major_locator(MaxNLocator(integer=True))
        top.set_ylabel("hosts")
        top.set_title(f"{run.name}: {run.record.joules / 1e6:,.0f} MJ", fontsize=11)
        bottom.set_xlim(0, last_end(runs) / unit)
        bottom.set_xlabel(f"simulated time ({unit_name})")
        bottom.set_ylabel("power (kW)")
    handles = [Patch(color=color, label=state.name.lower().replace("_", " ")) for state, color in STATE_COLORS.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles) if len(runs) > 1 else 3, fontsize=8)
    return figure


def _kilowatts(run: Run, platform: Platform | None, edges: Floats) -> list[Floats]:
    """Mean power between the edges (seconds): by state as in the colours, or only of all where no platform is known."""
    energy = run.record.energy
    if platform is not None:
        joules = energy_over_time(run.record, platform, edges)[:, list(STATE_COLORS)]
    elif energy is not None:
        joules = np.interp(edges, energy.time, np.asarray(energy.energy, float), left=0.0)[:, np.newaxis]
    else:
        joules = np.zeros((len(edges), 1))
    return list(np.diff(joules, axis=0).T / np.diff(edges) / 1e3)


def _stack(axes: Axes, times: Floats, layers: Sequence[Floats], colors: Sequence[str]) -> None:
    axes.stackplot(times, *layers, colors=colors, step="post", linewidth=0)
