"""Associations, qualities of service and shares: who may run how much, and whose turn it is."""

import math
from collections.abc import Mapping
from pathlib import Path

import msgspec

from decision.model.errors import InputError

from .conf import read_text
from .text import in_plain_words, is_endless, is_nothing, read_duration, read_memory, read_minutes, read_tres

ROOT = "root"


# sacctmgr(1), specifications of associations and QOS: GrpTRES, MaxJobsPerUser, MaxTRESPerUser and the like.
class Limits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Limits on what runs at a time; -1 where there is none."""

    jobs: int = -1
    nodes: int = -1
    cpus: int = -1
    memory: float = -1.0  # megabytes
    gpus: int = -1


NO_LIMITS = Limits()


class Association(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A user in an account, or an account."""

    account: str
    user: str = ""
    parent: str = ROOT  # the account above that of an account
    shares: float = 1.0
    usage: float = 0.0  # billing x seconds, when the log begins
    priority: float = 0.0
    # sacctmgr(1): Grp... counts all jobs below, Max... those of the association alone
    group: Limits = NO_LIMITS  # of it and all below it
    each: Limits = NO_LIMITS  # of a user's jobs, and of one job
    job_nodes: int = -1  # of one job
    job_cpus: int = -1
    max_wall: float = math.inf  # seconds
    not_simulated: tuple[str, ...] = ()  # limits of other kinds


class Quality(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A quality of service (QOS): its priority, whom it preempts, and limits on what runs under it."""

    name: str
    priority: float = 0.0
    # sacctmgr(1), Preempt: the QOS whose jobs may be preempted by jobs of this one
    preempts: tuple[str, ...] = ()
    preempt_mode: str = ""
    usage_factor: float = 1.0
    group: Limits = NO_LIMITS
    user: Limits = NO_LIMITS
    account: Limits = NO_LIMITS
    job_nodes: int = -1
    job_cpus: int = -1
    max_wall: float = math.inf
    grace: float = 0.0  # seconds
    not_simulated: tuple[str, ...] = ()
    exempt: float = -1.0  # seconds for which its jobs run before they may be preempted; -1: as the cluster says


def read_table(path: Path, needed: str) -> list[dict[str, str]]:
    """A table of ``sacctmgr -P`` or ``sshare -P``, by the columns' names in lower case; none of an empty file.

    Raises:
        InputError: if it has no column of this name, or a line does not fit.
    """
    # sacctmgr prints nothing, not even a header, where there is nothing to show
    if path.is_file() and path.stat().st_size == 0:
        return []
    header, *lines = read_text(path).splitlines()
    columns = [name.strip().lower() for name in header.split("|")]
    if needed.lower() not in columns:
        raise InputError(f"{path}, line 1: the column {needed} is missing; make the file with -P, and with its header")
    rows = []
    for number, line in enumerate(lines, 2):
        values = line.split("|")
        if len(values) != len(columns):
            raise InputError(f"{path}, line {number}: {len(values)} values for {len(columns)} columns; is it complete?")
        rows.append(dict(zip(columns, values, strict=True)))
    return rows


def read_associations(path: Path) -> list[Association]:
    """What ``sacctmgr -P show assoc`` prints. Raises InputError."""
    found = []
    for number, row in enumerate(read_table(path, "Account"), 2):
        try:
            # MaxTRES is of one job; MaxTRESPU of a user's jobs together
            job = read_tres(row.get("maxtres", ""))
            association = Association(
                account=row["account"],
                user=row.get("user", ""),
                parent=row.get("par name", row.get("parentname", "")) or ROOT,
                shares=_shares(row.get("share", row.get("fairshare", "1"))),
                priority=_number(row.get("priority") or "0"),
                group=_limits(row.get("grpjobs", ""), row.get("grptres", "")),
                each=Limits(jobs=_count(row.get("maxjobs", ""))),
                # of MaxTRES only nodes and cpus are known
                job_nodes=_count(job.get("node", "")),
                job_cpus=_count(job.get("cpu", "")),
                max_wall=_wall(row.get("maxwall", "")),
                not_simulated=_not_simulated(row),
            )
        except ValueError as error:
            raise InputError(
                f"{path}, line {number}: {in_plain_words(error)}; is it what sacctmgr -P show assoc prints?"
            ) from None
        found.append(association)
    return found


def read_qualities(path: Path) -> list[Quality]:
    """What ``sacctmgr -P show qos`` prints. Raises InputError."""
    found = []
    for number, row in enumerate(read_table(path, "Name"), 2):
        exempt = row.get("preemptexempttime", "")
        try:
            job = read_tres(row.get("maxtres", ""))
            quality = Quality(
                name=row["name"],
                priority=_number(row.get("priority") or "0"),
                preempts=tuple(filter(None, row.get("preempt", "").split(","))),
                preempt_mode=row.get("preemptmode", ""),
                usage_factor=_number(row.get("usagefactor") or "1"),
                group=_limits(row.get("grpjobs", ""), row.get("grptres", "")),
                user=_limits(row.get("maxjobspu", ""), row.get("maxtrespu", "")),
                account=_limits(row.get("maxjobspa", ""), row.get("maxtrespa", "")),
                job_nodes=_count(job.get("node", "")),
                job_cpus=_count(job.get("cpu", "")),
                max_wall=_wall(row.get("maxwall", "")),
                not_simulated=_not_simulated(row),
                grace=read_duration(row.get("gracetime", "") or "0"),
                exempt=-1.0 if is_nothing(exempt) else read_minutes(exempt),
            )
        except ValueError as error:
            raise InputError(
                f"{path}, line {number}: {in_plain_words(error)}; is it what sacctmgr -P show qos prints?"
            ) from None
        found.append(quality)
    return found


_OTHER_LIMITS = {
    **{"grptresmins": "GrpTRESMins", "grptresrunmins": "GrpTRESRunMins", "grpwall": "GrpWall", "mintres": "MinTRES"},
    **{"maxtresmins": "MaxTRESMins", "maxtrespernode": "MaxTRESPerNode", "grpjobsaccrue": "GrpJobsAccrue"},
    **{"maxjobsaccrue": "MaxJobsAccrue", "maxjobsaccruepu": "MaxJobsAccruePU", "maxjobsaccruepa": "MaxJobsAccruePA"},
    **{"usagethres": "UsageThreshold", "minpriothresh": "MinPrioThreshold"},
}
_QUIET_FLAGS = {"", "DenyOnLimit"}  # who breaks the limit is not in the log


def _not_simulated(row: Mapping[str, str]) -> tuple[str, ...]:
    """The names of limits that are set and that the model does not know."""
    limits = [shown for name, shown in _OTHER_LIMITS.items() if not is_nothing(row.get(name, ""))]
    flags = set(row.get("flags", "").split(",")) - _QUIET_FLAGS
    return (*limits, *(f"Flags={flag}" for flag in sorted(flags)))


def _limits(jobs: str, tres: str) -> Limits:
    parts = read_tres(tres)
    memory = parts.get("mem", "")
    return Limits(
        jobs=_count(jobs),
        nodes=_count(parts.get("node", "")),
        cpus=_count(parts.get("cpu", "")),
        memory=-1.0 if not memory or is_endless(memory) else read_memory(memory),
        gpus=_count(parts.get("gres/gpu", "")),
    )


def _number(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(f"{text!r} is not a number")
    return value


def _count(text: str) -> int:
    return -1 if is_nothing(text) or is_endless(text) else int(_number(text))


def _wall(text: str) -> float:
    return math.inf if is_nothing(text) else read_minutes(text)


def _shares(text: str) -> float:
    return float(text) if text.replace(".", "", 1).isdigit() else 1.0  # "parent" shares with its account


def read_shares(path: Path) -> list[Association]:
    """What ``sshare -a -l -P`` prints: shares and usage; accounts stand below their parents, further to the right.

    Raises:
        InputError: as `read_table`.
    """
    # sshare indents an account by one blank for each level, which is the only sign of its parent
    found, above = [], [ROOT]
    for number, row in enumerate(read_table(path, "RawUsage"), 2):
        text, user = row["account"], row.get("user", "")
        name, depth = text.strip(), len(text) - len(text.lstrip())
        if not user:
            above = [*above[:depth], name] if depth else [name]
        try:
            usage = _number(row["rawusage"] or "0")
            shares = _shares(row.get("rawshares", "1"))
        except ValueError as error:
            raise InputError(
                f"{path}, line {number}: {in_plain_words(error)}; is it what sshare -a -l -P prints?"
            ) from None
        parent = above[depth - 1] if depth and not user else ROOT
        found.append(Association(account=name, user=user, parent=parent, shares=shares, usage=usage))
    return found


def merge_shares(associations: list[Association], shares: list[Association]) -> list[Association]:
    """Associations with the shares, the usage and the tree of sshare."""
    by_key = {(each.account, each.user): each for each in associations}
    for each in shares:
        known = by_key.get((each.account, each.user))
        # sshare has the usage now, and shares as they count; sacctmgr has limits: both are needed
        if known is None:
            by_key[each.account, each.user] = each
            continue
        parent = each.parent if known.parent == ROOT else known.parent
        by_key[each.account, each.user] = msgspec.structs.replace(
            known, usage=each.usage, shares=each.shares, parent=parent
        )
    return list(by_key.values())
