"""One name has one meaning: a public function, class or constant has one home in the package, but for those below."""

import ast
from collections import defaultdict

ALLOWED = {
    "Environment": "of the public API, to inherit from; and the arrays of one environment in `decision.rl.envs`",
    "Simulation": "of the public API, stepped from outside; and the one that the engine in plain Python runs",
    "evaluate": "of the public API, and what `decision.rl.envs` offers to who trains in Python: episodes of one policy",
    "intervals": "of the public API, of numbers with their chance; and of host ids that follow each other",
    "Policy": "what decides, and any of them under pybatsim, whose launcher is told ``decision.pybatsim:Policy``",
    "main": "of a process: the command line, and the child that Batsim's library runs in",
}


def names_of(statement):
    """What a statement of a module defines: a function, a class, or constants."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [statement.name]
    if not isinstance(statement, ast.Assign | ast.AnnAssign):
        return []
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    found = [each for target in targets for each in ast.walk(target)]
    return [each.id for each in found if isinstance(each, ast.Name) and each.id.isupper()]


def test_a_public_name_has_one_home(root):
    homes = defaultdict(set)
    for path in (root / "decision").rglob("*.py"):
        for name in [name for node in ast.parse(path.read_text("utf-8")).body for name in names_of(node)]:
            if not name.startswith("_"):
                homes[name].add(str(path.relative_to(root / "decision")))
    shared = {name: sorted(places) for name, places in homes.items() if len(places) > 1}
    assert {name: places for name, places in shared.items() if name not in ALLOWED} == {}
    assert shared.keys() == ALLOWED.keys(), "what is no longer shared is no longer allowed"
