"""Encoders: what they refuse, and what survives a checkpoint."""

import msgspec
import numpy as np
import pytest

from decision.model.errors import ConfigError
from decision.model.workload import Delay, Job, Workload
from decision.rl.schedulers import make_encoder, read_encoder
from decision.rl.schedulers.dbf import DbfEncoder

JOBS = [Job(id=f"w0!{i}", submit_time=0.0, size=1, walltime=w, profile="d") for i, w in enumerate((10.0, 250.0))]
WORKLOAD = Workload(name="w0", jobs=JOBS, profiles={"d": Delay(1.0)}, nb_res=4)


def test_the_longest_walltime_counts_as_one_unless_it_is_said():
    made = make_encoder(4, [WORKLOAD], head=3, tail=2)
    assert (made.max_runtime, made.max_wait) == (250, 250)
    made = make_encoder(4, [WORKLOAD], max_runtime=1000, max_wait=500)
    assert (made.max_runtime, made.max_wait) == (1000, 500)


def test_shapes():
    made = make_encoder(256, [WORKLOAD], head=16, tail=4)
    assert (made.shape, made.actions, made.window, made.cluster) == ((256 + 4 * 20,), 21, 20, 256)
    made = make_encoder(256, [WORKLOAD], name="dbf-pools", head=16, tail=4, pools=12)
    assert (made.shape, made.cores) == ((12 + 4 * 20,), 0)


@pytest.mark.parametrize("name", ["dbf", "dbf-pools"])
def test_an_encoder_survives_a_checkpoint(name):
    made = make_encoder(4, [WORKLOAD], name=name)
    assert read_encoder(msgspec.json.decode(msgspec.json.encode(made))) == made


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"version": 7}, "version 7 was asked for, this package has version 1 and 2"),
        ({"name": "dbg"}, "there is no encoder 'dbg'"),
        ({"head": 0, "tail": 0}, "at least one slot"),
        ({"head": -1}, "at least one slot"),
        ({"head": 10**9}, "at most 8,192 slots"),
        ({"cluster": 3}, "cluster: must be 4 with the encoder dbf; found 3"),
        ({"cores": 8}, "cluster: must be 8 with the encoder dbf; found 4"),
        ({"cores": 0, "cluster": 0}, "cores: must be 1 to 1,048,576"),
        ({"cores": 2**40, "cluster": 2**40}, "cores: must be 1 to 1,048,576"),
        ({"name": "dbf-pools"}, "cores: must be 0 with the encoder dbf-pools; found 4"),
        ({"name": "dbf-pools", "cores": 0, "cluster": 5000}, "at most 1024"),
        ({"name": "inspector", "cores": 0, "cluster": 8}, "unknown field `(cores|cluster|head|tail)`"),
        ({"name": "rlscheduler", "cores": 0, "cluster": 1}, "unknown field `c"),
        ({"max_runtime": 1e-320}, "max_runtime: must be between 1e-06"),
        ({"max_runtime": 0.0}, "max_runtime: must be positive"),
        ({"max_wait": float("inf")}, "max_wait: must be positive"),
        ({"depth": 3}, "unknown field `depth`"),
        ({"head": "x"}, "head"),
    ],
)
def test_a_broken_encoder_is_refused_in_one_line(changed, message):
    fields = msgspec.to_builtins(make_encoder(4, [WORKLOAD])) | changed
    with pytest.raises(ConfigError, match=message) as caught:
        read_encoder(fields)
    assert "\n" not in str(caught.value)


def test_arrays_that_kernels_would_write_outside_of_are_refused():
    made = make_encoder(4, [WORKLOAD], head=3)
    observation, mask = np.zeros((2, *made.shape), np.float32), np.zeros((2, made.actions), np.int8)
    made.check_arrays(4, observation, mask)
    for cores, numbers, actions in ((8, 16, 4), (4, 15, 4), (4, 16, 3)):
        with pytest.raises(ConfigError, match=f"have room for {numbers} and {actions}"):
            made.check_arrays(cores, observation[..., :numbers], mask[..., :actions])


def test_pools_must_be_two():
    with pytest.raises(ConfigError, match="at least 2"):
        make_encoder(4, [WORKLOAD], name="dbf-pools", pools=1)
    assert make_encoder(1, [WORKLOAD]).shape == DbfEncoder(**msgspec.to_builtins(make_encoder(1, [WORKLOAD]))).shape
