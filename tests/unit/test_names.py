"""One name has one meaning: public functions and classes have one home each, but for those below."""

import ast
from collections import defaultdict

TWINS = (  # the same steps for others: each module has the whole set, and is used as a whole
    {"schedulers/green_kernels.py", "schedulers/deepscheduling_kernels.py"},  # what a scheduler of days asks
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


def test_a_public_name_has_one_home(root):
    homes = defaultdict(set)
    for path in (root / "decision").rglob("*.py"):
        place = str(path.relative_to(root / "decision"))
        if place.partition("/")[0] in ROOMS:
            continue
        twin = next((sorted(twins)[0] for twins in TWINS if place in twins), place)
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].add(twin)
    shared = {name: sorted(places) for name, places in homes.items() if len(places) > 1}
    assert {name: places for name, places in shared.items() if name not in ALLOWED} == {}
    assert shared.keys() == ALLOWED.keys(), "what is no longer shared is no longer allowed"
