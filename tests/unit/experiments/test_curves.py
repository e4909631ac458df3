"""Learning curves: which are read, put together and drawn."""

import math

import numpy as np
import pytest

from decision.experiments.results import LearningCurve, load_trainings, on_common_steps, read_curves
from decision.model.errors import ConfigError, InputError

picture = pytest.importorskip("decision.report.plots.results")

HEADER = "iteration,steps,episodes,reward,waiting_time,utilization,entropy"


def training(folder, *rows: str):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "progress.csv").write_text("".join(f"{line}\n" for line in (HEADER, *rows)))
    return folder


def seeds(**columns) -> dict[str, np.ndarray]:
    return {name: np.array(values, float) for name, values in columns.items()}


def test_an_empty_cell_is_no_value_and_a_line_that_is_not_whole_is_left_out(tmp_path):
    folder = training(tmp_path, "1,100,0,-0.5,,,0.7", "2,200,3,-0.25,60.0,0.5,0.6")
    with (folder / "progress.csv").open("a") as file:
        file.write("3,300,0,-0.1")
    curves = read_curves(folder / "progress.csv")
    assert curves["steps"].tolist() == [100, 200]
    assert curves["reward"].tolist() == [-0.5, -0.25]
    assert math.isnan(curves["waiting_time"][0]) and curves["waiting_time"][1] == 60


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "has no column steps"),
        ("policy,episode\n", "has no column steps"),
        ("steps,loss\n1,2\n", "has no column reward"),
        ("steps,reward\n", "no iteration has ended yet"),
        ("steps,reward\n100,0.5\n200,much\n", "line 3: could not convert string to float: 'much'"),
        ("steps,reward\n100,0.5,1\n", "line 2: 3 values, not 2"),
        ("steps,reward\n100,\n", "a row lacks steps or reward"),
    ],
)
def test_what_is_no_curve_is_refused(tmp_path, content, message):
    (tmp_path / "progress.csv").write_text(content)
    with pytest.raises(InputError, match=message):
        read_curves(tmp_path / "progress.csv")


def test_three_seeds_of_one_thing_are_together_and_two_are_not(tmp_path):
    folders = [training(tmp_path / f"{kind}{seed}", "1,100,0,-0.5,,,0.7") for kind in "ab" for seed in range(3)]
    found = load_trainings(folders[:5], lambda folder: folder.name[0])
    assert [(one.name, len(one.seeds)) for one in found] == [("a0 ... a2 (3 seeds)", 3), ("b0", 1), ("b1", 1)]


def test_where_nothing_says_what_was_learned_each_is_by_itself(tmp_path):
    folders = [training(tmp_path / name, "1,100,0,-0.5,,,0.7") for name in "abc"]
    assert [one.name for one in load_trainings(folders, lambda folder: None)] == ["a", "b", "c"]
    with pytest.raises(ConfigError, match="named twice"):
        load_trainings([folders[0], folders[0]], lambda folder: None)


def test_seeds_are_compared_over_the_steps_that_all_reached():
    first = seeds(steps=[100, 200, 300], reward=[1, 2, 3])
    second = seeds(steps=[100, 300, 500], reward=[10, 30, 50])
    steps, values = on_common_steps([first, second], "reward")
    assert steps.tolist() == [100, 200, 300]
    assert values.tolist() == [[1, 2, 3], [10, 20, 30]]


def test_a_seed_without_a_value_has_the_one_between_its_own():
    first = seeds(steps=[100, 200, 300, 400], reward=[0] * 4, wait=[math.nan, 20, math.nan, 40])
    second = seeds(steps=[100, 200, 300, 400], reward=[0] * 4, wait=[1, 2, 3, math.nan])
    steps, values = on_common_steps([first, second], "wait")
    assert steps.tolist() == [200, 300] and values.tolist() == [[20, 30], [2, 3]]
    assert on_common_steps([first, second], "queue")[1].shape == (2, 0)


def panels(*trainings):
    return {axes.get_title(loc="left"): axes for axes in picture.learning_curves(list(trainings)).figure.axes}


def test_several_seeds_are_their_mean_in_a_band_from_lowest_to_highest():
    three = [seeds(steps=[100, 200], reward=[r, 2 * r], utilization=[0.5, r / 10]) for r in (1, 2, 6)]
    drawn = panels(LearningCurve("a", three), LearningCurve("b", [seeds(steps=[100, 200], reward=[4, 5])]))
    assert list(drawn) == ["return: mean reward of a step", "utilization (%)"]
    reward, use = drawn.values()
    assert [line.get_ydata().tolist() for line in reward.lines] == [[3, 6], [4, 5]]
    (band,) = reward.collections
    assert {tuple(point) for point in band.get_paths()[0].vertices} == {(100, 1), (100, 6), (200, 2), (200, 12)}
    assert use.lines[0].get_ydata().tolist() == pytest.approx([50, 30])


def test_the_validation_comes_first_and_begins_before_the_first_step(tmp_path):
    folder = tmp_path / "a"
    folder.mkdir()
    head = "iteration,steps,reward,validation_waiting_time,validation_bounded_slowdown"
    (folder / "progress.csv").write_text(f"{head}\n0,0,,90.0,9.0\n1,100,-0.5,,\n2,200,-0.6,30.0,3.0\n")
    (training,) = load_trainings([folder], lambda folder: None)
    drawn = panels(training)
    titles = ["validation: mean waiting time (s)", "validation: mean bounded slowdown", "return: mean reward of a step"]
    assert list(drawn) == titles
    lines = [drawn[title].lines[0] for title in titles]
    assert [line.get_xdata().tolist() for line in lines] == [[0, 200], [0, 200], [100, 200]]
    assert lines[0].get_ydata().tolist() == [90, 30]
    assert picture.learning_curves([training]).alt.endswith("mean waiting time of the validation, s: a 30.")


def test_twelve_trainings_have_twelve_markers_and_a_legend_that_names_them():
    shown = picture.learning_curves([LearningCurve(f"a{i}", [seeds(steps=[1, 2], reward=[i, i])]) for i in range(12)])
    (axes,) = shown.figure.axes
    assert len({line.get_marker() for line in axes.lines}) == len({line.get_label() for line in axes.lines}) == 12
    assert len({(line.get_color(), line.get_linestyle()) for line in axes.lines}) == 12
    assert shown.alt.endswith("Last mean reward of a step: " + ", ".join(f"a{i} {i}" for i in range(12)) + ".")


def test_a_lone_training_is_a_line_without_a_band():
    (reward,) = panels(LearningCurve("a", [seeds(steps=[100, 200], reward=[4, 5])])).values()
    assert [line.get_ydata().tolist() for line in reward.lines] == [[4, 5]] and not reward.collections
