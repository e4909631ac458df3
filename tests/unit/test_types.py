"""Types: what mypy lets pass untyped is compiled."""

import ast
import tomllib
from pathlib import Path

COMPILED = ("kernel", "inlined", "entry", "entry_with", "intrinsic")  # the last words of decorators


def test_only_kernels_have_no_annotations(root: Path) -> None:
    settings = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["mypy"]["overrides"]
    lax = next(each["module"] for each in settings if each.get("disallow_untyped_defs") is False)
    files = [file for name in lax for file in root.glob(f"{name.replace('.', '/')}.py")]
    assert len(files) >= len(lax)
    assert [name for file in files for name in _untyped(file)] == []


def _untyped(file: Path) -> list[str]:
    """Functions of a module that are neither annotated nor compiled."""
    found = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef) and node.returns is None and node.name != "__init__":
            names = [ast.unparse(each.func if isinstance(each, ast.Call) else each) for each in node.decorator_list]
            if not any(name.endswith(COMPILED) for name in names):
                found.append(f"{file.name}: {node.name}")
    return found
