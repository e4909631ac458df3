"""Only `decision.state.transitions` writes into the arrays of a `ClusterState`."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import decision
from decision.state.cluster import ClusterState

PACKAGE = Path(decision.__file__).parent
WRITERS = {"state/transitions.py", "state/cluster.py"}  # the latter makes them
STATES = {"state", "_state", "arrays"}  # what a ClusterState is called: a name, or an attribute of something


def writes(source: str) -> list[str]:
    """The lines of a module that write into an array of a state, also through another name of the array."""
    lines = source.splitlines()
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    found = {node.lineno for function in functions for node in _writes_in(function)}
    return [lines[number - 1].strip() for number in sorted(found)]


def _writes_in(function: ast.FunctionDef) -> Iterator[ast.expr]:
    states, arrays = _other_names(function)
    for node in ast.walk(function):
        for target in _targets(node):
            if (isinstance(target, ast.Subscript) and _is_array(target.value, states, arrays)) or (
                isinstance(target, ast.Attribute) and _is_array(target, states, arrays)
            ):
                yield target


def _targets(node: ast.AST) -> Iterator[ast.expr]:
    """What a statement assigns to, or fills."""
    match node:
        case ast.Assign(targets=targets):
            for target in targets:
                yield from target.elts if isinstance(target, ast.Tuple) else [target]
        case ast.AugAssign(target=target):
            yield target


def _other_names(function: ast.FunctionDef) -> tuple[set[str], set[str]]:
    """Local names of states, and of arrays of states."""
    states, arrays = set(STATES), set()
    for node in ast.walk(function):
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            for name, value in _pairs(target, node.value):
                if _is_state(value, states):
                    states.add(name)
                elif _is_array(value, states, arrays):
                    arrays.add(name)
    return states, arrays


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        return [(target.id, value)]
    starred = isinstance(target, ast.Tuple) and any(isinstance(each, ast.Starred) for each in target.elts)
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and not starred:
        return [pair for one, other in zip(target.elts, value.elts, strict=True) for pair in _pairs(one, other)]
    return []


def _is_state(node: ast.expr, states: set[str]) -> bool:
    return (isinstance(node, ast.Name) and node.id in states) or (
        isinstance(node, ast.Attribute) and node.attr in STATES
    )


def _is_array(node: ast.expr, states: set[str], arrays: set[str]) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in ClusterState._fields and _is_state(node.value, states)
    return isinstance(node, ast.Name) and node.id in arrays


@pytest.mark.parametrize(
    "line",
    [
        "state.now = 1.0",
        "world.state.nb_free += 1",
        "self._state.host_job[:] = -1",
        "state.start_time[0], other = 1.0, 2",
        "size = state.size; size[0] = 1",
        "here, now = world.state, 0.0; here.free[0] = 7",
        "state, at = world.state, 0; queue = state.queue; queue[at] -= 1",
    ],
)
def test_a_write_is_found(line):
    assert writes(f"def f(self, world, state, x):\n    {line}\n") != []


@pytest.mark.parametrize(
    "line", ["plan.nb_actions = 1", "truth.size[0] = 2", "now = state.now", "x[state.nb_jobs] = 1"]
)
def test_what_is_no_write_into_a_state_is_not_found(line):
    assert writes(f"def f(plan, truth, state, x):\n    {line}\n") == []


def test_transitions_alone_write_into_a_state():
    assert len(writes((PACKAGE / "state" / "transitions.py").read_text())) > 40
    found = {
        str(path.relative_to(PACKAGE)): lines
        for path in sorted(PACKAGE.rglob("*.py"))
        if str(path.relative_to(PACKAGE)) not in WRITERS and (lines := writes(path.read_text()))
    }
    assert found == {}
