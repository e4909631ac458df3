"""Names fold into ranges, and only where nothing is lost."""

import pytest

from decision.model.hosts import fold_names


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        ([f"taurus-{n}" for n in range(1, 17)], ["taurus-[1-16]"]),
        (sorted(f"taurus-{n}" for n in range(1, 17)), ["taurus-[1-16]"]),
        ([f"o-{s}-core-{c:02d}" for s in (1, 2, 4) for c in range(12)], ["o-[1-2,4]-core-[00-11]"]),
        (["a1.org", "a2.org", "a3.net"], ["a[1-2].org", "a3.net"]),
        (["x09", "x10", "x11"], ["x[09-11]"]),
        (["x9", "x09"], ["x9", "x09"]),
        (["n1-2", "n1-3", "n2-2"], ["n1-[2-3]", "n2-2"]),
        (["a", "b", "a1"], ["a", "b", "a1"]),
        (["7", "8"], ["[7-8]"]),
        (["a", "a"], ["a"]),
        ([], []),
    ],
)
def test_names_fold_into_ranges(names, folded):
    assert fold_names(names) == folded
