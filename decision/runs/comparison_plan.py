"""What is compared: a plan of policies, workloads, engines, windows and seeds, and the contenders that it names."""

from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from decision.analysis.recorded import RECORDED
from decision.formats.selection import Selection
from decision.model.errors import ConfigError
from decision.policies.outlook_settings import ESTIMATE, OUTLOOK_OPTIONS
from decision.policies.registry import without_estimate

from . import Engine


class ComparisonPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What is compared."""

    platform: Path
    workloads: tuple[Path, ...]  # one after the other, not together
    policies: tuple[str, ...]  # their names in the comparison
    specs: dict[str, str] = {}  # what those of them are that have a name of their own, by name
    own: dict[str, Any] = {}  # those of them that are objects, by name
    settings: dict[str, str] = {}  # options of every policy
    engines: tuple[Engine, ...] = (Engine.EMBEDDED,)  # not DOCKER: an image has no content to hash
    batsim: str = "batsim"  # the command
    energy: bool = False
    events: tuple[Path, ...] = ()  # external ones, of every run
    selection: Selection = Selection()  # of each workload
    windows: int = 0  # random sequences of jobs of each workload; 0 takes the whole workload
    length: int = 1024  # jobs in a window
    draw: int = 0  # seed of the windows
    shake: int = 0  # shaken copies on which whole workloads are judged; 0 runs each once, as it is
    days: tuple[int, int | None] | None = None  # those of the days with two submissions or more; each is run alone
    seeds: int = 1  # of the policies, 0, 1, ...
    timeout: float = 0.0  # seconds to wait for Batsim
    decide_limit: float = 0.0  # as of `PolicyChoice`
    worth: bool = False  # whether each policy is compared with itself by walltimes and by perfect predictions, too
    feedback: bool = False  # whether users' later sessions come when their earlier jobs have ended


class Contender(NamedTuple):
    """A policy that is compared."""

    name: str
    policy: str
    settings: dict[str, str]
    perfect: bool = False  # whether its jobs say their own run times


_PERFECT = " (perfect)"  # what the name of a policy with perfect predictions ends with


def contenders(plan: ComparisonPlan) -> list[Contender]:
    """The policies of a plan; where their worth is asked for, with their twins."""
    every = [Contender(policy, spec_of(plan, policy), plan.settings) for policy in plan.policies]
    if plan.worth:
        every += [twin for policy in simulated(plan) for twin in twins(plan, policy)]
    return list({each.name: each for each in every}.values())


def spec_of(plan: ComparisonPlan, policy: str) -> str:
    """What a policy of the plan is, as users name it."""
    return plan.specs.get(policy, policy)


def simulated(plan: ComparisonPlan) -> list[str]:
    """The policies that are simulated."""
    return [policy for policy in plan.policies if policy != RECORDED]


def twins(plan: ComparisonPlan, policy: str) -> tuple[Contender, Contender]:
    """A policy by walltimes, and by perfect predictions."""
    plain = without_estimate(spec_of(plan, policy))
    settings = {name: value for name, value in plan.settings.items() if name not in OUTLOOK_OPTIONS}
    own = Contender(plain, plain, settings)
    if ESTIMATE in plan.settings:
        own = own._replace(name=f"{plain},estimate=walltime", policy=f"{plain},estimate=walltime")
    return own, Contender(plain + _PERFECT, f"{plain},estimate=given", settings, perfect=True)


def contender(plan: ComparisonPlan, policy: str, engine: Engine) -> str:
    """A policy's name in a comparison: with its engine where there are several."""
    return policy if len(plan.engines) == 1 else f"{policy} @{engine}"


def find_baseline(plan: ComparisonPlan, name: str | None) -> str:
    """The contender that is called `name`, or is that policy on the first engine; the first of all if None.

    Raises:
        ConfigError: if it is unknown.
    """
    names = [each.name for each in contenders(plan)]
    name = next((shown for shown, spec in plan.specs.items() if spec == name), name)
    every = [contender(plan, policy, engine) for policy in names for engine in plan.engines]
    first = [contender(plan, policy, plan.engines[0]) for policy in names]
    named = dict(zip(names, first, strict=True)) | dict(zip(every, every, strict=True))
    if name is None:
        return every[0]
    if name not in named:
        compared = ", ".join(every)
        raise ConfigError(f"the baseline {name!r} is not compared (compared are {compared})", field="baseline")
    return named[name]


def workload_name(plan: ComparisonPlan, path: Path) -> str:
    """A workload's name in a comparison: its file's, or the path where several have that."""
    namesakes = sum(other.stem == path.stem for other in plan.workloads)
    return path.stem if namesakes == 1 else str(path)
