"""Pictures of a search for settings: the value of each trial, by its number, its steps and each setting."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter, MaxNLocator

from decision.experiments.results import (
    CURVES,
    SearchTrial,
    best_trial,
    judged_by,
    more_is_better,
    on_common_steps,
    read_curves,
)
from decision.rl.learning.config import Range, Space

from .figures import (
    BLUE,
    GREY,
    PLAIN,
    RED,
    Picture,
    headline,
    logarithmic,
    name_panel,
    new_figure,
    panels_in_row,
    styled,
)

_MARKERS = {"finished": "o", "pruned": "x", "best": "D"}


@styled
def search_picture(trials: Sequence[SearchTrial], space: Space) -> Picture:
    """The value of each trial, the curves of all validations, and a panel for each setting that was varied."""
    name, best = judged_by(trials), best_trial(trials)
    panels = 2 + len(space.varied)
    across = panels_in_row(panels, 26)
    down = -(-panels // across)
    figure = new_figure(6 + 15 * down)
    every = list(figure.subplots(down, across, squeeze=False).flat)
    for unused in every[panels:]:
        unused.remove()
    draw_trials(every[0], trials)
    by_step = every[1]
    for trial in [*(each for each in trials if each is not best), best]:
        if not trial.folders:
            continue
        steps, seen = on_common_steps([read_curves(folder / CURVES) for folder in trial.folders], name)
        if len(steps):
            color = BLUE if trial is best else GREY
            by_step.plot(steps, seen.mean(axis=0), color=color, linewidth=1.6 if trial is best else 0.6)
    by_step.set_xlabel("steps")
    by_step.xaxis.set_major_formatter(EngFormatter(sep=""))
    by_step.xaxis.set_major_locator(MaxNLocator(5))
    known = [trial for trial in trials if trial.judged]
    for axes, (key, values) in zip(every[2:], space.varied.items(), strict=False):
        if isinstance(values, Range):
            _draw_marks(axes, [(trial, float(trial.settings[key])) for trial in known], best, name)
            axes.set_xlim(values.low, values.high)
            if values.log:
                logarithmic(axes, "x", "{x:g}")
            else:
                axes.xaxis.set_major_locator(MaxNLocator(5, integer=values.whole))
        else:
            places = {value: float(at) for at, value in enumerate(values)}
            _draw_marks(axes, [(trial, places[trial.settings[key]]) for trial in known], best, name)
            axes.set_xticks(range(len(values)), list(values))
            axes.set_xlim(-0.5, len(values) - 0.5)
    for axes, title in zip(every, ("by trial", "by step", *space.varied), strict=False):
        name_panel(axes, title, across)
        axes.yaxis.set_major_formatter(PLAIN)
        axes.yaxis.set_major_locator(MaxNLocator(5))
    unit = " (s)" if name.endswith("_time") else ""
    headline(figure, f"{name.replace('_', ' ')}{unit}: {'higher' if more_is_better(name) else 'lower'} is better")
    pruned = sum(trial.state == "pruned" for trial in trials)
    marks = "Each mark is a trial: a circle one that has ended, a cross one that was given up, the diamond the best"
    lines = "By trial: the line is the best one so far. By step: the validations of all, those of the best in blue"
    return Picture(
        figure,
        f"{marks}. {lines}.",
        f"{len(trials)} trials, {pruned} given up. The best is trial {best.number}: {best.judged[name]:,.6g}.",
    )


def draw_trials(axes: Axes, trials: Sequence[SearchTrial]) -> None:
    """Draw the value of each trial by its number, and the best one so far, into axes of anybody's figure."""
    name, best = judged_by(trials), best_trial(trials)
    choose = max if more_is_better(name) else min
    _draw_marks(axes, [(trial, float(trial.number)) for trial in trials if trial.judged], best, name)
    done = [trial for trial in trials if trial.state == "finished"]
    so_far = [choose(trial.judged[name] for trial in done[: at + 1]) for at in range(len(done))]
    axes.step([trial.number for trial in done], so_far, where="post", color=BLUE, linewidth=1)
    axes.set_xlabel("trial")
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))


def _draw_marks(axes: Axes, places: Sequence[tuple[SearchTrial, float]], best: SearchTrial, name: str) -> None:
    for trial, at in places:
        kind, color = ("best", BLUE) if trial is best else (trial.state, GREY if trial.state == "finished" else RED)
        axes.plot([at], [trial.judged[name]], _MARKERS[kind], color=color, zorder=3 if kind == "best" else 2)
