"""Walltimes made from run times on the way from a log to a workload."""

from pathlib import Path

import pytest

from decision.experiments.conversion import Conversion, convert
from decision.files import load_workload
from decision.model.demand import runtimes, walltimes
from decision.model.errors import ConfigError
from decision.model.reshape import Filters


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.swf"
    lines = [f"{i} {60 * i} -1 {97 * i} 2 -1 -1 -1 50 -1 1 {'-1 ' * 7}" for i in range(1, 101)]
    path.write_text("\n".join(["; MaxProcs: 8", *lines]))
    return path


def test_estimates_take_the_place_of_recorded_walltimes(log: Path) -> None:
    target = log.with_suffix(".json")
    for model, factor in (("exact", 1), ("factor:3", 3)):
        convert(Conversion(sources=(log,), target=target, estimates=model))
        made = load_workload(target)
        assert walltimes(made).tolist() == (factor * runtimes(made)).tolist()


def test_the_seed_chooses_modal_estimates(log: Path) -> None:
    made = []
    for seed in (1, 1, 2):
        target = log.with_suffix(f".{seed}.json")
        convert(Conversion(sources=(log,), target=target, estimates="tsafrir", seed=seed))
        made.append(load_workload(target))
    first, again, other = (walltimes(workload).tolist() for workload in made)
    assert first == again != other
    assert (walltimes(made[0]) >= runtimes(made[0])).all()


def test_the_offered_load_is_of_jobs_that_run_to_their_end(log: Path) -> None:
    filters = Filters(load=0.7)
    done = convert(Conversion(sources=(log,), target=log.with_suffix(".json"), filters=filters, estimates="factor:2"))
    assert done.files[0].load == pytest.approx(0.7)


def test_one_option_makes_the_walltimes_and_not_two(log: Path) -> None:
    filters = Filters(walltime="none")
    asked = Conversion(sources=(log,), target=log.with_suffix(".json"), filters=filters, estimates="exact")
    with pytest.raises(ConfigError, match="so do walltimes 'none'; give one of them") as caught:
        convert(asked)
    assert caught.value.field == "walltime"
