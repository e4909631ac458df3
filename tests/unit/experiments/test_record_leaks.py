"""What really happened is for people: it is looked for in all that a policy, an environment, a checkpoint can reach."""

import gc
import types
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import decision as d
from decision.engine.rules import EngineOptions
from decision.experiments import Engine
from decision.experiments.run import make_engine
from decision.model.trace import Trace

WAIT = 7_654_321.0  # seconds that each job waited
CPU, MEMORY, REST = 2_718_281.0, 31_337.0, "leaked_node"  # fields 6, 7 and 19


@pytest.fixture
def log(tmp_path: Path) -> Path:
    rows = [
        f"{n} {60 * n} {WAIT:.0f} {100 + n % 7} {1 + n % 3} {CPU:.0f} {MEMORY:.0f} {1 + n % 3} 900 -1 1 {n % 4} "
        f"1 1 1 1 -1 -1 {REST}"
        for n in range(1, 121)
    ]
    (tmp_path / "log.swf").write_text("; MaxProcs: 8\n" + "\n".join(rows) + "\n")
    return tmp_path / "log.swf"


def reachable(*roots: Any) -> Iterator[Any]:
    """All objects that these have, and those have, but for code."""
    seen, waiting = set(), list(roots)
    while waiting:
        found = waiting.pop()
        if id(found) in seen or isinstance(found, types.ModuleType | type | types.FunctionType | types.FrameType):
            continue
        seen.add(id(found))
        yield found
        waiting += gc.get_referents(found)
        if isinstance(found, np.ndarray) and found.base is not None:
            waiting.append(found.base)


def leaks(*roots: Any) -> list[str]:
    """What of the record can be reached."""
    found = []
    for each in reachable(*roots):
        if isinstance(each, Trace):
            found.append("a trace")
        elif isinstance(each, np.ndarray) and each.dtype.kind in "fiu":
            late = (each > WAIT - 1) & (each < WAIT + 10_000)  # waits, and starts
            found += ["an array"] if (late | np.isin(each, (CPU, MEMORY))).any() else []
        elif isinstance(each, str | bytes):
            found += ["a text"] if REST in str(each) else []
    return found


def test_the_search_finds_what_is_there(log: Path) -> None:
    workload = d.load_workload(log)
    assert {"a trace", "an array", "a text"} <= set(leaks(workload.trace))


class Spy:
    """First fit in Python, which looks at all that it is given."""

    found: list[str]

    def reset(self, platform: Any, seed: int) -> None:
        self.found = leaks(platform)

    def decide(self, cluster: Any, plan: Any) -> None:
        if len(cluster.queue):
            self.found += leaks(cluster, plan)
        for job in list(cluster.queue):
            if job.size <= plan.nb_free:
                plan.start(job)


def test_no_policy_can_reach_it(log: Path) -> None:
    spy = Spy()
    d.simulate("cluster256", d.load_workload(log, jobs=slice(0, 5)), spy)
    assert spy.found == []


def test_no_environment_can_reach_it(log: Path) -> None:
    env = d.make_env("dbf", None, str(log), head=4, tail=0, jobs=10)
    observation, info = env.reset(seed=1)
    assert leaks(env, observation, info) == []


def test_no_checkpoint_holds_it(log: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    small = {"learn.envs": 2, "learn.rollout": 8, "learn.minibatch": 16, "env.jobs": 20}
    checkpoint = d.train("dbf", "cluster256", str(log), tmp_path / "learned", changes=small, steps=16)
    with zipfile.ZipFile(checkpoint) as packed:
        content = b"".join(packed.read(name) for name in packed.namelist())
    for mark in (REST, f"{WAIT:.0f}", f"{CPU:.0f}"):
        assert mark.encode() not in content
    assert np.float64(WAIT).tobytes() not in content
    assert np.float32(WAIT).tobytes() not in content


def test_no_engine_is_given_it(log: Path) -> None:
    for engine in (Engine.EMBEDDED, Engine.REFERENCE):
        made = make_engine(engine, d.load_platform("toy"), [d.load_workload(log)], [], EngineOptions())
        assert leaks(made) == []
