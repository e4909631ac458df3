"""Types: what mypy lets pass untyped is compiled."""

import ast
from pathlib import Path

COMPILED = (
    "kernel",
    "inlined",
    "entry",
    "entry_with",
    "intrinsic",
    "Interface",
    "without_vectors",
)  # ends of decorators


def test_only_kernels_have_no_annotations(root: Path) -> None:
    """They are typed by their callers' arrays; mypy refuses what is annotated in part (see pyproject.toml)."""
    files = sorted((root / "decision").rglob("*.py"))
    assert [name for file in files for name in _untyped(file)] == []


def _untyped(file: Path) -> list[str]:
    """Functions of a module that are neither annotated nor compiled."""
    found = []
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not _is_annotated(node):
            names = [ast.unparse(each.func if isinstance(each, ast.Call) else each) for each in node.decorator_list]
            if not any(name.rpartition(".")[2] in COMPILED for name in names):
                found.append(f"{file.name}: {node.name}")
    return found


def _is_annotated(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    given = node.args
    arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
    named = [each for each in arguments if each.arg not in ("self", "cls")]
    return all(each.annotation for each in named) and (node.returns is not None or node.name == "__init__")
