"""One name has one meaning: public functions and classes have one home each, but for those below."""

import ast
from collections import defaultdict

TWINS = (  # the same steps for others: each module has the whole set, and is used as a whole
    {  # what a scheduler asks
        "learned/deepscheduling_kernels.py",
        "learned/green_kernels.py",
        "learned/packing_kernels.py",
    },
    {"engine/batsim_words.py", "engine/words5.py"},  # the messages of two protocols
    {"learn/bc.py", "learn/crr.py", "learn/ppo.py", "learn/sac.py"},  # an algorithm's update
)
ROOMS = {  # rooms with words of their own
    "api": "the same acts as below, for Python objects instead of files",
    "papers": "each folder has its paper's words",
    "slurm": "a model of another program, in the words of that program",
}
ALLOWED = {
    "Worth": "of a job (model), and of predictions (runs.compare)",
    "main": "of a process: the command line, and the child that Batsim's library runs in",
    "measure": "of a schedule (runs.gates), and a step of TWINS",
}


NAMESPACES = {  # whose constants are read through the module only: n.ORDER
    "learned/deepscheduling_kernels.py",
    "learned/green_kernels.py",
    "learned/joint_numbers.py",
    "learned/packing_kernels.py",
}


def shared_names(root, names_of):
    """The homes of each public name that has more than one, by what a statement of a module names."""
    homes = defaultdict(set)
    for path in (root / "decision").rglob("*.py"):
        place = str(path.relative_to(root / "decision"))
        if place.partition("/")[0] in ROOMS or (names_of is constants and place in NAMESPACES):
            continue
        twin = next((sorted(twins)[0] for twins in TWINS if place in twins), place)
        for node in ast.parse(path.read_text("utf-8")).body:
            for name in names_of(node):
                if not name.startswith("_"):
                    homes[name].add(twin)
    return {name: sorted(places) for name, places in homes.items() if len(places) > 1}


def definitions(node):
    return [node.name] if isinstance(node, ast.FunctionDef | ast.ClassDef) else []


def constants(node):
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [
        each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name) and each.id.isupper()
    ]


def test_a_public_name_has_one_home(root):
    shared = shared_names(root, definitions)
    assert {name: places for name, places in shared.items() if name not in ALLOWED} == {}
    assert shared.keys() == ALLOWED.keys(), "what is no longer shared is no longer allowed"


def test_a_constant_that_no_other_module_needs_is_private(root):
    assert shared_names(root, constants) == {}
