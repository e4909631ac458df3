"""Made workloads for properties of policies."""

from hypothesis import strategies as st

from helpers.policy_toys import Given
from helpers.reference_policies import Job

_WHOLE = st.integers(1, 12).map(float)
_FEW = st.sampled_from([1.0, 5.0, 20.0])
_ANY = st.floats(0.25, 40.0, allow_nan=False).map(lambda x: round(x, 3))


@st.composite
def workloads(
    draw, largest: int = 8, most: int = 24, early: bool = True, overruns: bool = False, moves: bool = False
) -> Given:
    """Jobs with many ties, walltimes that some reach, and `early` ends.

    With `overruns` some run longer than their walltime. With `moves` some hosts are away at first, when nothing runs on
    them, and return later.
    """
    hosts = draw(st.integers(1, largest))
    times = draw(st.sampled_from([_WHOLE, _FEW, _ANY]))
    sizes = draw(st.sampled_from([st.integers(1, hosts), st.sampled_from([1, 1, 1, (hosts + 1) // 2, hosts])]))
    jobs, runtimes, now = [], [], 1.0 if moves else 0.0
    for number in range(draw(st.integers(1, most))):
        now += draw(st.sampled_from([0.0, 0.0, 1.0, 2.0, 5.0]) | times)
        walltime = draw(times)
        jobs.append(Job(number, now, draw(sizes), walltime))
        shares = [1.0, 1.0] + ([0.5, 0.1] if early else []) + ([1.25, 3.0] if overruns else [])
        share = draw(st.sampled_from(shares))
        slip = draw(st.sampled_from([0.0, 0.0, 1e-4])) if overruns else 0.0
        runtimes.append(walltime * share + slip)
    away = []
    if moves and hosts > 1:
        for host in draw(st.sets(st.integers(0, hosts - 1), max_size=hosts // 2)):
            away += [(0.0, host, False), (draw(st.integers(1, 30)) + 0.5, host, True)]
    return Given(jobs, runtimes, hosts, sorted(away), split=draw(st.booleans()) if overruns else False)
