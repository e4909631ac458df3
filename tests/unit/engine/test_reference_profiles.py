"""Profiles unrolled into leaf tasks."""

import pytest
from helpers.reference_toys import job, workload
from hypothesis import given
from hypothesis import strategies as st

from decision.engine.truth import MAX_LEAVES, LeafKind, LeafTask, check_width, flatten, is_moldable
from decision.model.errors import ConfigError
from decision.model.workload import Composed, Delay, Foreign, Parallel, ParallelHomogeneous, ParallelHomogeneousTotal


@pytest.mark.parametrize(
    ("profile", "leaf"),
    [
        (Delay(5.0, 2), LeafTask("p", LeafKind.DELAY, 5.0, exit_code=2)),
        (ParallelHomogeneous(6.0, 0.0), LeafTask("p", LeafKind.FLOPS_EACH, 6.0)),
        (ParallelHomogeneousTotal(7.0, 0.0), LeafTask("p", LeafKind.FLOPS_TOTAL, 7.0)),
        (Parallel((1.0, 0.0), (0.0,) * 4), LeafTask("p", LeafKind.FLOPS_VECTOR, 0.0, (1.0, 0.0))),
    ],
)
def test_a_profile_without_parts_is_one_leaf(profile, leaf):
    assert flatten("p", workload(p=profile)) == (leaf,)


def test_a_leaf_knows_the_way_to_it():
    work = workload(outer=Composed(("x", "inner"), 2), inner=Composed(("x", "x")), x=Delay(1.0))
    assert [leaf.path for leaf in flatten("outer", work)] == [
        (("outer", 0),),
        (("outer", 1), ("inner", 0)),
        (("outer", 1), ("inner", 1)),
        (("outer", 2),),
        (("outer", 3), ("inner", 0)),
        (("outer", 3), ("inner", 1)),
    ]


def test_nothing_follows_a_leaf_that_fails():
    work = workload(p=Composed(("x", "bad", "x"), 1_000_000_000), x=Delay(1.0), bad=Delay(2.0, exit_code=4))
    assert [(leaf.profile, leaf.exit_code) for leaf in flatten("p", work)] == [("x", 0), ("bad", 4)]


def test_the_last_leaf_gives_the_exit_code_of_the_whole():
    work = workload(outer=Composed(("in", "in")), x=Delay(1.0), **{"in": Composed(("x", "x"), 1, exit_code=5)})
    assert [leaf.exit_code for leaf in flatten("outer", work)] == [0, 5]


@given(st.lists(st.sampled_from("xyz"), min_size=1, max_size=5), st.integers(1, 5), st.integers(1, 4))
def test_a_composed_profile_has_the_leaves_of_its_parts_so_often(sequence, repeat, outer):
    work = workload(
        p=Composed(("q",), outer), q=Composed(tuple(sequence), repeat), x=Delay(1.0), y=Delay(2.0), z=Delay(3.0)
    )
    assert [leaf.profile for leaf in flatten("p", work)] == sequence * repeat * outer


@pytest.mark.parametrize(
    ("profile", "says"),
    [
        (
            ParallelHomogeneous(1.0, 1e6),
            r"w0: profile 'p' has communication \(com = 1e\+06 bytes\).* run this workload",
        ),
        (Parallel((1.0, 1.0), (0.0, 3.0, 0.0, 0.0)), r"communication \(com = 3 bytes\)"),
        (Foreign("parallel_homogeneous_pfs", {}), "type 'parallel_homogeneous_pfs', which the embedded engine cannot"),
        (Composed(("x", "x"), 600_000), f"more than {MAX_LEAVES:,} tasks once unrolled"),
        (Composed(("x", "gone")), "there is no profile 'gone'"),
        (Composed(("x", "p")), "profile 'p' contains itself"),
        (Delay(1.0, -3), "profile 'p' has exit code -3; Batsim takes no code below -1"),
    ],
)
def test_what_cannot_be_simulated_is_refused_by_name(profile, says):
    with pytest.raises(ConfigError, match=says):
        flatten("p", workload(p=profile, x=Delay(1.0)), "the platform's topology is unknown")


@pytest.mark.parametrize(
    ("profile", "moldable"),
    [
        (ParallelHomogeneousTotal(1.0, 0.0), True),
        (ParallelHomogeneous(1.0, 0.0), False),
        (Composed(("t", "t")), True),
        (Composed(("t", "x")), False),
        (Composed(("c",)), False),  # Batsim looks one level deep
    ],
)
def test_only_work_given_in_all_may_change_its_number_of_hosts(profile, moldable):
    work = workload(p=profile, t=ParallelHomogeneousTotal(1.0, 0.0), c=Composed(("t",)), x=Delay(1.0))
    assert is_moldable("p", work) is moldable


def test_amounts_per_host_must_be_as_many_as_the_hosts():
    work = workload(p=Composed(("v",)), v=Parallel((1.0, 2.0), (0.0,) * 4))
    check_width(job("a", "p", size=2), flatten("p", work), work)
    with pytest.raises(ConfigError, match="profile 'v' has amounts for 2 hosts, but job w0!a requests 3"):
        check_width(job("a", "p", size=3), flatten("p", work), work)
