"""What the commands about Slurm print: how well a model agrees, and what a sweep found."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decision.slurm.agree import Agreement
    from decision.slurm.case import Case
    from decision.slurm.sweep import Sweep


def print_agreement(case: "Case", found: "Agreement") -> None:
    """Waits as recorded and as simulated, the largest differences, and the verdict."""
    import numpy as np

    from decision.slurm.agreement_report import start_differences
    from decision.slurm.wait_groups import job_groups, wait_figures

    from .tables import number, simple_table
    from .terminal import say, stdout

    runtime = np.array([case.jobs[n].runtime for n in found.started])
    columns = ("jobs", "who", "mean wait, s", "median", "p90", "bounded slowdown")
    table = simple_table("group", *columns, title="Recorded and simulated", names=3)
    simulated = found.simulated.mean(0)
    for name, places in job_groups(case, found.started).items():
        for who, waits in (("recorded", found.recorded), ("simulated", simulated)):
            row = wait_figures(waits[places], runtime[places])
            table.add_row(name, f"{row.jobs:,}", who, *(number(value) for value in row[1:]))
    stdout().print(table)
    means, (low, high) = found.means, found.interval
    table = simple_table("", "mean wait, s", "off", title="What the model is worth")
    for name, mean in means.items():
        off = "" if name == "recorded" else f"{100 * (mean / max(means['recorded'], 1e-9) - 1):+.1f} %"
        table.add_row(name, number(mean), off)
    stdout().print(table)
    say(f"simulated mean wait {number(means['simulated'])} s, interval {number(low)} to {number(high)} s")
    say("starts within " + ", ".join(f"{name}: {100 * share:.0f} %" for name, share in found.close.items()))
    recorded, model = found.utilization
    say(f"utilization: recorded {100 * recorded:.1f} %, simulated {100 * model:.1f} %")
    for each in start_differences(case, found):
        say(f"job {each.job}: recorded {each.recorded}, simulated {each.simulated} ({each.reason})")
    for line in case.keys.words():
        say(line)
    say(f"verdict: {found.verdict}")


def named_change(change: "dict[str, str]") -> str:
    """``bf_interval=30, bf_window=1440``."""
    return ", ".join(f"{name}={value}" for name, value in change.items())


_COSTLY = ("bf_interval", "bf_max_job_test")


def print_sweep(found: "Sweep", output: Path | None) -> None:
    """What each setting changes, and which is the best; `output` is the folder of slurm.conf.diff."""
    from .tables import number, simple_table
    from .terminal import say, stdout

    title = f"{found.goal.text}, {number(found.base)} as configured"
    table = simple_table("setting", "change", "from", "to", "last third", "tested/s", "", title=title)
    for each in found.tried:
        low, high = each.interval
        said = f"breaks {', '.join(each.broken)}" if each.broken else "better" if each.better else ""
        shown = (number(each.mean), number(low), number(high), number(each.held_out))
        table.add_row(named_change(each.set), *shown, f"{each.tested:.2f}", said)
    for name, value in found.policies.items():
        table.add_row(f"policy {name}", number(found.goal.sign * (value - found.base)), "", "", "", "", "")
    stdout().print(table)
    if any(name in each.set for each in found.tried for name in _COSTLY):
        say("bf_interval and bf_max_job_test load the controller: tested/s is how many jobs backfill tests a second")
    if found.best is None:
        say("no setting is better than yours")
    else:
        say(f"best: {named_change(found.best.set)}" + (f"; see {output}/slurm.conf.diff" if output else ""))
