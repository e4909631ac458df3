"""Imports that no contract can see."""

import re

LISTED = {  # in .importlinter, with what they import
    "decision/__init__.py",
    "decision/api/learning.py",
    "decision/batsim/pybatsim.py",
    "decision/cli/app.py",
    "decision/compiling/jit.py",
    "decision/rl/learning/schedulers.py",
    "decision/policies/__init__.py",
    "decision/policies/loading.py",
}


def test_modules_are_imported_by_text_only_where_that_is_listed(root):
    texts = {str(path.relative_to(root)): path.read_text("utf-8") for path in (root / "decision").rglob("*.py")}
    assert {name for name, text in texts.items() if re.search(r"import_module\(|__import__", text)} == LISTED
    contracts = (root / ".importlinter").read_text().partition("[importlinter:contract")[0]
    modules = {name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in LISTED}
    assert {name for name in modules if name not in contracts} == set()
