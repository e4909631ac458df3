"""How a comparison is set up, in words for its report: what was chosen, and as what."""

import datetime
from collections.abc import Sequence

from decision import __version__
from decision.formats.input_facts import file_facts
from decision.formats.workload import is_log
from decision.model.reshape import dropped_text
from decision.model.workload import Workload

from .comparison_plan import ComparisonPlan


def describe_setup(plan: ComparisonPlan, workloads: Sequence[Workload], command: str = "") -> dict[str, str]:
    """How a plan is run, in words: what was chosen, and as what.

    Args:
        plan: what is compared.
        workloads: those of `read_workloads`.
        command: what the user typed.
    """
    files = list(zip(plan.workloads, workloads, strict=True))
    facts = {
        "command": command,
        "platform": f"{plan.platform} (sha256 {file_facts(plan.platform).sha256})",
        "workloads": ", ".join(
            f"{path} ({len(workload.jobs):,} jobs, sha256 {file_facts(path).sha256})" for path, workload in files
        ),
        **{f"left out of {path}": dropped_text(workload) for path, workload in files if workload.dropped},
        "jobs": _describe_windows(plan),
        "policies": "; ".join(f"{name} ({plan.specs[name]})" if name in plan.specs else name for name in plan.policies),
        "options of every policy": ", ".join(f"{name}={value}" for name, value in plan.settings.items()),
        "seeds of the policies": "0" if plan.seeds == 1 else f"0 to {plan.seeds - 1}",
        "engine": ", ".join(plan.engines),
        "energy": "simulated" if plan.energy else "not simulated",
        "external events": ", ".join(f"{path} (sha256 {file_facts(path).sha256})" for path in plan.events),
        **{f"notes on {path}": "; ".join(workload.notes) for path, workload in files if workload.notes},
        "jobs left out": _describe_sizes(plan, workloads),
        "walltimes": _describe_walltimes(plan, workloads),
        "submissions": "users' later sessions by the ends of their earlier jobs (feedback)" if plan.feedback else "",
        "package": f"decision {__version__}",
        "date": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}",
    }
    return {name: text for name, text in facts.items() if text}


def _describe_windows(plan: ComparisonPlan) -> str:
    cut = plan.selection.jobs != (0, None)
    if plan.days is not None:
        first, last = plan.days
        which = f"days {first}:{'' if last is None else last} of each workload, of those with two submissions or more"
        return f"{which}; each is a run of its own, which begins an hour before midnight and is counted from then on"
    among = f"jobs {plan.selection.texts()['jobs']} of each workload" if cut else "each workload"
    if not plan.windows:
        every = among if cut else f"all of {among}"
        return f"{every}, on {plan.shake:,} copies with shaken submissions" if plan.shake else every
    each = f"{plan.windows:,} random sequences of {plan.length:,} jobs of {among.removeprefix('jobs ')}"
    return f"{each}, drawn with seed {plan.draw}, the same for all policies"


def _describe_sizes(plan: ComparisonPlan, workloads: Sequence[Workload]) -> str:
    if plan.selection.nodes is not None:
        return f"those larger than {plan.selection.nodes:,} hosts"
    return "of logs, those larger than the machine in the header" if any(map(is_log, workloads)) else ""


def _describe_walltimes(plan: ComparisonPlan, workloads: Sequence[Workload]) -> str:
    if plan.selection.walltime == "requested" and not any(map(is_log, workloads)):
        return ""
    field = plan.selection.time_field
    return plan.selection.walltime + ("" if field is None else f", those of logs in field {field}")
