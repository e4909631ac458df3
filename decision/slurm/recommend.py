"""Lines of slurm.conf to change, as a unified diff of the operator's own file."""

import csv
import difflib
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from decision.compiling.bundle import F8
from decision.files.text import read_bytes
from decision.model.errors import ConfigError, InputError
from decision.model.hosts import nearest

from .agree import Counted, Progress, calibrated, compared_jobs, refuse_no_start, run_phases, waits_of
from .case import Case, engine_size
from .conf import IN_SCHEDULER_PARAMETERS, MODEL, PARAMETERS, Conf, Settings, read_text
from .priority import YEAR
from .simulate import Phase
from .sweep import Change, Sweep, Tried, free_phases, measure_change, read_goal, without_cycles

# Another order of jobs, as Slurm can have it: by weights of its own priority, else by a job_submit.lua.
#
# The orders are those of decision's policies that give a job a number once (Carastan-Santos and de Camargo's F1 to F4
# among them), and any other, a learned one too, as a table of jobs and numbers. How well weights express an order is
# Kendall's tau over the pairs of jobs that waited at the same time.

# a job's number, the lowest first, of `seconds` (time limit), `size` (hosts) and `age` (of the log at submission)
FORMULAS: Mapping[str, str] = {
    "fcfs": "age",
    "lcfs": "-age",
    "sjf": "seconds",
    "ljf": "-seconds",
    "saf": "seconds * size",
    "laf": "-seconds * size",
    "sqf": "size",
    "lqf": "-size",
    "f1": "log10(seconds) * size + 8.70e2 * log10(age)",
    "f2": "sqrt(seconds) * size + 2.56e4 * log10(age)",
    "f3": "seconds * size + 6.86e6 * log10(age)",
    "f4": "seconds * sqrt(size) + 5.30e5 * log10(age)",
}
# one pair in twenty is the other way round then
EXPRESSED = 0.9  # Kendall's tau from which weights express an order
POINTS = 1_000_000  # of priority between the first and the last job
_MOST_COMPARED = 2_000  # jobs, evenly from the log
# a coarse grid: the simulation judges what comes of it
_AGE_SHARES = (0.0, 0.1, 0.3, 1.0, 3.0)
# large, because priorities are cut to integers
_WEIGHT = 100_000


class Approximation(NamedTuple):
    """An order, and what Slurm can make of it; changes are against the configuration as it is."""

    order: str
    tau: float  # of the best weights
    weights: Change
    exact: Tried
    by_weights: Tried
    by_script: Tried | None  # None where no formula is known
    base: float  # mean wait as configured, seconds
    script: str  # job_submit.lua; empty where weights are enough or no formula is known

    @property
    def chosen(self) -> Tried | None:
        """The one to take: weights where they express the order, else the script."""
        return self.by_weights if self.tau >= EXPRESSED else self.by_script

    @property
    def lost(self) -> float:
        """Seconds of the mean wait that the approximation gives away."""
        return math.nan if self.chosen is None else self.chosen.mean - self.exact.mean


def approximate(
    case: Case, settings: Settings, order: str, runs: int, seed: int = 0, show: Progress | None = None
) -> Approximation:
    """Find weights for an order, simulate them and the order itself, and write a script where weights do not do.

    Args:
        case: the cluster and its log.
        settings: its parameters.
        order: a name of `FORMULAS`, or the path of a CSV with the columns job and number.
        runs: guesses at the phases.
        seed: of these.
        show: is called with how many of how many runs are done.

    Raises:
        ConfigError: for an order that there is not.
        InputError: for a table that cannot be read.
    """
    numbers = compared_jobs(case)
    ranks = _ranks(case, order)
    # priorities from 1 to 1 + POINTS; 0 would hold a job
    span = float(ranks.max() - ranks.min())
    points = 1 + POINTS * (ranks.max() - ranks) / span if span > 0 else np.ones(len(ranks))
    weights, tau = _best_weights(case, settings, numbers, ranks)
    unknown = without_cycles(case)
    counted, groups = Counted(show), 3 + (order in FORMULAS)
    found = calibrated(unknown, settings, runs, seed, counted.followed_by(groups * runs))
    refuse_no_start(case, settings, found[0][0], numbers)
    phases = free_phases([phase for _, phase in found], settings)
    plain = settings.changing({"PriorityType": "priority/multifactor"})

    def waits(changed: Settings, priorities: F8 | None) -> F8:
        nonlocal groups
        groups -= 1
        shown = counted.followed_by(groups * len(phases))
        results = run_phases(unknown, changed, [Phase(phase, ()) for phase in phases], shown, priorities)
        return np.stack([waits_of(run, numbers) for run in results])

    base = waits(settings, None)
    parts = [(plain, points), (settings.changing(weights), None)]
    if order in FORMULAS:
        parts.append((plain, np.floor(points)))
    goal, tried = read_goal("mean-wait", case, numbers), []
    for changed, priorities in parts:
        after = waits(changed, priorities)
        change = weights if priorities is None else {"order": order}
        tried.append(measure_change(case, numbers, goal, (), base, after, change, 0.0, len(parts)))
    wanted = tau < EXPRESSED and order in FORMULAS
    return Approximation(
        order=order,
        tau=tau,
        weights=weights,
        exact=tried[0],
        by_weights=tried[1],
        by_script=tried[2] if len(tried) > 2 else None,
        base=float(base.mean()),
        script=submit_script(case, order) if wanted else "",
    )


def _ranks(case: Case, order: str) -> F8:
    """Each job's number, the lowest first."""
    if order in FORMULAS:
        return _numbers_of(case, order)
    path = Path(order)
    if path.suffix != ".csv":
        raise ConfigError(
            f"there is no order {order!r}{nearest(order, FORMULAS)}; it is {', '.join(FORMULAS)}, or a CSV with job "
            "and number",
            field="order",
        )
    rows = list(csv.reader(read_bytes(path).decode("utf-8-sig", errors="replace").splitlines()))
    if not rows or rows[0][:2] != ["job", "number"]:
        raise InputError(f"{path}, line 1: the columns are not job,number")
    found: dict[str, float] = {}
    for line, row in enumerate(rows[1:], 2):
        try:
            found[row[0]] = float(row[1])
        except (ValueError, IndexError):
            raise InputError(f"{path}, line {line}: not a job and a number") from None
    missing = [job.id for job in case.jobs if job.id not in found]
    if missing:
        raise InputError(f"{path}: {len(missing):,} jobs have no number, the first one is {missing[0]}")
    return np.array([found[job.id] for job in case.jobs])


def _numbers_of(case: Case, order: str) -> F8:
    names = {"log10": np.log10, "sqrt": np.sqrt, "__builtins__": {}}
    seconds = np.array([min(max(60.0, job.limit), YEAR) for job in case.jobs])
    size = np.array([engine_size(case, job) for job in case.jobs], float)
    age = np.array([max(1.0, job.submitted - case.begin) for job in case.jobs])
    return np.asarray(eval(FORMULAS[order], names, {"seconds": seconds, "size": size, "age": age}), float)


def _best_weights(case: Case, settings: Settings, numbers: Sequence[int], ranks: F8) -> tuple[Change, float]:
    """The weights of size and age under which jobs that waited together are most nearly in this order."""
    chosen = np.array(numbers)[:: max(1, len(numbers) // _MOST_COMPARED)]
    jobs = [case.jobs[n] for n in chosen]
    begin, end = np.array([job.submit for job in jobs], float), np.array([job.start for job in jobs], float)
    # only pairs that waited at the same time can change places
    together = (begin[:, None] < end[None, :]) & (begin[None, :] < end[:, None])
    wanted = np.sign(ranks[chosen][None, :] - ranks[chosen][:, None])
    longest = max(1.0, float((end - begin).max()))
    cpus = sum(node.cores * node.threads for node in case.nodes)
    whole = np.array([(job.nodes / len(case.nodes) + job.cpus / cpus) / 2 for job in jobs])
    minutes = np.array([min(max(60.0, job.limit), YEAR) / 60 for job in jobs])
    relative = np.array([job.cpus for job in jobs]) / minutes / cpus
    signs = wanted[together]
    best = -2.0, "", "", 0.0
    for flag, share in (("", whole), ("SMALL_RELATIVE_TO_TIME", relative)):
        for small in ("YES", "NO"):
            factor = np.clip(1 - share if small == "YES" else share, 0, 1)
            for ages in _AGE_SHARES:
                points = np.floor(_WEIGHT * factor - _WEIGHT * ages * (begin - begin.min()) / longest)
                # Kendall's tau-b over the pairs that waited together
                found = np.sign(points[:, None] - points[None, :])[together]
                scale = math.sqrt(float(np.abs(signs).sum()) * float(np.abs(found).sum()))
                tau = float((signs * found).sum()) / scale if scale else 0.0
                if tau > best[0]:
                    best = tau, flag, small, ages
    tau, flag, small, ages = best
    others = ("Fairshare", "QOS", "Partition", "Assoc")
    weights = {"PriorityType": "priority/multifactor", "PriorityFavorSmall": small}
    weights |= {"PriorityWeightJobSize": str(_WEIGHT), "PriorityWeightAge": str(round(_WEIGHT * ages))}
    weights |= {f"PriorityWeight{name}": "0" for name in others if settings.number(f"PriorityWeight{name}")}
    # PriorityMaxAge beyond the longest wait, or age would stop to tell jobs apart
    weights["PriorityMaxAge"] = str(max(1, math.ceil(longest / 60)))
    before = settings.text("PriorityFlags")
    flags = [part for part in before.split(",") if part and part != "SMALL_RELATIVE_TO_TIME"]
    after = ",".join([*flags, *([flag] if flag else [])])
    return weights | ({"PriorityFlags": after} if after != before else {}), tau


def submit_script(case: Case, order: str) -> str:
    """A job_submit.lua that gives each job the site factor of this order.

    Weights are to be 0, so that nothing else counts.
    """
    ranks = _numbers_of(case, order)
    low, span = float(ranks.min()), max(float(ranks.max() - ranks.min()), 1e-9)
    size = "known(job_desc.min_nodes, 1)" if case.linear else "known(job_desc.min_cpus, known(job_desc.num_tasks, 1))"
    return f"""-- Jobs in the order {order}: the site factor of a job's priority, fixed at its submission.
-- Needs PriorityType=priority/multifactor, JobSubmitPlugins=lua and all PriorityWeight... at 0.
local FIRST, LAST, POINTS = {low!r}, {low + span!r}, {POINTS}
local BEGIN = {case.begin}

local function log10(x) return math.log(x) / math.log(10) end
local function sqrt(x) return math.sqrt(x) end
local function known(value, otherwise)
    if value == nil or value == slurm.NO_VAL or value == slurm.NO_VAL16 then return otherwise end
    return value
end

function slurm_job_submit(job_desc, part_list, submit_uid)
    local seconds = 60 * math.min(math.max(known(job_desc.time_limit, 525600), 1), 525600)
    local size = {size}
    local age = math.max(1, os.time() - BEGIN)
    local number = {FORMULAS[order]}
    local points = 500 * POINTS + POINTS * (LAST - number) / (LAST - FIRST)
    job_desc.site_factor = math.floor(math.min(math.max(points, 1), 1000 * POINTS))
    return slurm.SUCCESS
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
    return slurm.SUCCESS
end

return slurm.SUCCESS
"""


_WEIGHTS = ("Age", "Assoc", "Fairshare", "JobSize", "Partition", "QOS", "TRES")


def changed_text(text: str, conf: Conf, changes: Mapping[str, str], remark: str) -> str:
    """The text of a slurm.conf with other values; comments and order stay.

    Args:
        text: the file.
        conf: what is read from it.
        changes: by parameter; those of the model itself are left out.
        remark: a comment above each changed line.
    """
    lines = text.splitlines(keepends=True)
    known = {name.lower(): PARAMETERS[name.lower()] for name in changes if name.lower() in PARAMETERS}
    in_list = {low for low, parameter in known.items() if parameter.name in IN_SCHEDULER_PARAMETERS}
    options = {name: value for name, value in changes.items() if name.lower() in in_list}
    if options:
        # in their order; new ones at the end
        low = {name.lower(): (PARAMETERS[name.lower()].name, value) for name, value in options.items()}
        parts = []
        for part in conf.get("SchedulerParameters").split(","):
            name = part.partition("=")[0].strip().lower()
            parts.append((_option(*low.pop(name)) if name in low else part).strip())
        parts += [_option(name, value) for name, value in low.values()]
        _set_key(lines, "SchedulerParameters", ",".join(filter(None, parts)), remark)
    for name, value in changes.items():
        parameter = known.get(name.lower())
        # parameters of the model are no keys of Slurm
        if name in options or (parameter is not None and parameter in MODEL):
            continue
        needs_restart = parameter is None or parameter.restart
        restart = "; needs a restart of slurmctld" if needs_restart else ""
        _set_key(lines, parameter.name if parameter else name, value, remark + restart)
    return "".join(lines)


def _option(name: str, value: str) -> str:
    """An option as it is written: a flag stands alone, and one that is off is left out."""
    if PARAMETERS[name.lower()].default == "no":
        return name if value.lower() in ("yes", "true", "1") else ""
    return f"{name}={value}"


def _set_key(lines: list[str], key: str, value: str, remark: str) -> None:
    """Replace the last line of a key, with all lines that continue it; or add one at the end."""
    pattern = re.compile(rf"^\s*{key}\s*=", re.IGNORECASE)
    found = [number for number, line in enumerate(lines) if pattern.match(line)]
    new = [f"# {remark}\n", f"{key}={value}\n"]
    if not found:
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += "\n"
        lines += new
        return
    # the last one counts
    first = last = found[-1]
    while lines[last].rstrip().endswith("\\") and last + 1 < len(lines):
        last += 1
    comment = re.search(r"(?<!\\)#.*", lines[last])
    if comment:
        new[1] = f"{key}={value} {comment[0].rstrip()}\n"
    lines[first : last + 1] = new


def remark_of(found: Sweep, tried: Tried, command: str) -> str:
    """What is known of a setting, in one line."""
    low, high = tried.interval
    names = ", ".join(f"{name}={value}" for name, value in tried.set.items())
    return f"{names}: {found.goal.text} {tried.mean:+.4g} [{low:+.4g}, {high:+.4g}] of {found.base:.4g}; {command}"


def conf_diff(folder: Path, conf: Conf, found: Sweep, command: str) -> str:
    """The unified diff of a case's slurm.conf that sets the best setting; empty where none is better."""
    if found.best is None:
        return ""
    return _diff(folder, conf, found.best.set, remark_of(found, found.best, command))


def diff_of(folder: Path, conf: Conf, found: Approximation, command: str) -> str:
    """The unified diff of a case's slurm.conf that sets another order; empty where nothing expresses it."""
    if found.chosen is None:
        return ""
    low, high = found.chosen.interval
    says = f"mean-wait {found.chosen.mean:+.4g} [{low:+.4g}, {high:+.4g}] of {found.base:.4g}; {command}"
    if not found.script:
        return _diff(folder, conf, found.weights, f"order {found.order}: {says}")
    names = [f"PriorityWeight{each}" for each in _WEIGHTS if conf.get(f"PriorityWeight{each}", "0") not in ("", "0")]
    weights = {name: "" if name.endswith("TRES") else "0" for name in names}
    changes = {"PriorityType": "priority/multifactor", "JobSubmitPlugins": "lua", **weights}
    return _diff(folder, conf, changes, f"order {found.order} with job_submit.lua: {says}")


def _diff(folder: Path, conf: Conf, changes: Mapping[str, str], remark: str) -> str:
    text = read_text(folder / "slurm.conf")
    new = changed_text(text, conf, changes, remark)
    before, after = text.splitlines(keepends=True), new.splitlines(keepends=True)
    diff = difflib.unified_diff(before, after, "slurm.conf", "slurm.conf")
    # the last line of a file may have no end, which patch must be told
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in diff)
