"""A training in a Batsim leaves the checkpoint of one in the embedded engine."""

import pytest
from helpers.external_worlds import DECISION_BATSIM

import decision as d

SMALL = {"learn.envs": 2, "learn.rollout": 16, "learn.minibatch": 16, "env.jobs": 20}


@pytest.mark.nightly  # each validation starts sixteen
def test_the_checkpoint_is_the_same_byte_for_byte_and_goes_on_from_an_embedded_training(tmp_path):
    made = {"changes": SMALL, "jobs": slice(0, 60)}
    inside, outside, tuned = (tmp_path / name for name in ("inside", "outside", "tuned"))
    batsim = {"engine": "batsim", "batsim": DECISION_BATSIM}
    first = d.train("dbf", "cluster256", "lublin_256", inside, steps=64, **made).read_bytes()
    assert d.train("dbf", "cluster256", "lublin_256", outside, steps=64, **made, **batsim).read_bytes() == first
    d.train("dbf", "cluster256", "lublin_256", tuned, steps=64, **made)
    then = [
        d.train("dbf", "cluster256", "lublin_256", folder, steps=128, resume=True, **made, **options).read_bytes()
        for folder, options in ((inside, {}), (tuned, batsim))
    ]
    assert then[0] == then[1] != first
