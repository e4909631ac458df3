"""Jobs of a log as the model takes them: what they asked for, when, and what became of them."""

import math
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from decision.files.accounting.records import REASONS, Account
from decision.files.accounting.sacct import UNFINISHED
from decision.model.errors import InputError

from .records import RecordRow
from .text import (
    MINUTE,
    NEVER,
    count_gres,
    is_nothing,
    read_duration,
    read_hosts,
    read_memory,
    read_minutes,
    read_tres,
    split_list,
)

ALL_MEMORY = -1.0  # of each of its nodes: --mem=0


class Need(msgspec.Struct, frozen=True):
    """A job that another waits for."""

    kind: str  # after, afterany, afterok, afternotok, aftercorr
    job: str  # its id, or that of its array
    delay: float = 0.0  # seconds


class SlurmJob(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job of the log. Times are seconds since 1970 on the log's clock, `NEVER` where something did not happen."""

    id: str  # JobIDRaw
    submit: int
    start: int = NEVER  # of its last run
    end: int = NEVER
    begin: int = NEVER  # not before, from --begin
    runtime: float = 0.0  # seconds of its last run
    limit: float = math.inf  # seconds
    state: str = "COMPLETED"
    first_submit: int = NEVER  # where it was requeued: of its first run
    requeues: int = 0
    user: str = ""
    account: str = ""
    partition: str = ""  # one, or some with commas
    qos: str = ""  # one, or some with commas
    nodes: int = 1  # at least
    nodes_max: int = 0  # 0: as many as it takes
    cpus: int = 1
    cpus_per_task: int = 1
    tasks_per_node: int = 0  # 0: any number
    memory: float = 0.0  # megabytes per node or, if `memory_per_cpu`, per cpu; 0: as configured, `ALL_MEMORY`
    memory_per_cpu: bool = False
    memory_in_all: float = 0.0  # megabytes that the log says it was given or asked for; 0 where it says nothing
    gres: Mapping[str, int] = {}  # gpu, or gpu:a100 of a type; per node, or all in all if `gres_in_all`
    gres_in_all: bool = False
    exclusive: bool = False
    own_user: bool = False  # --exclusive=user: it shares its nodes with jobs of its user only
    held: bool = False
    runs_once: bool = False  # --no-requeue
    runs_again: bool = False  # --requeue
    billing: float = 0.0  # what it costs a second; 0 where the log does not say
    nice: int = 0
    features: str = ""
    nodelist: str = ""  # that it must have
    exclude: str = ""
    switches: int = 0  # leaf switches at most; 0: any number
    switch_wait: float = math.inf  # seconds for which it waits for them
    licenses: str = ""
    reservation: str = ""
    array: str = ""  # id of its array
    task: int = 0  # its number in the array
    array_limit: int = 0  # tasks at a time; 0: all
    needs: tuple[Need, ...] = ()
    any_need: bool = False  # whether one of `needs` is enough
    singleton: str = ""  # its name
    hosts: str = ""  # that it had
    cpus_had: int = 0
    options: tuple[str, ...] = ()  # of its submission, that the model does not know
    priority: float = math.nan  # at its submission
    reason: str = ""
    by_backfill: bool = False  # whether the backfill started it
    before: bool = False  # whether it ran when the log began

    @property
    def started(self) -> bool:
        """Whether it ever ran, as the log says."""
        return self.start != NEVER

    @property
    def submitted(self) -> int:
        """When it was submitted first."""
        return self.submit if self.first_submit == NEVER else self.first_submit

    @property
    def wait(self) -> float:
        """Seconds from submission to start."""
        return float(self.start - self.submit)


# What a job asked for: the options of the command that submitted it.

# Options of sbatch(1), salloc(1) and srun(1) by letter, and those that take a value: only so can the script be found.
_SHORT = {
    **{"A": "account", "a": "array", "b": "begin", "c": "cpus-per-task", "C": "constraint", "d": "dependency"},
    **{"D": "chdir", "e": "error", "F": "nodefile", "G": "gpus", "i": "input", "J": "job-name", "L": "licenses"},
    **{"m": "distribution", "M": "clusters", "n": "ntasks", "N": "nodes", "o": "output", "p": "partition"},
    **{"q": "qos", "S": "core-spec", "t": "time", "w": "nodelist", "x": "exclude", "B": "extra-node-info"},
}
_SHORT_FLAGS = {"H": "hold", "O": "overcommit", "s": "oversubscribe", "k": "no-kill", "W": "wait"}
_WITH_VALUE = {
    *_SHORT.values(),
    *("mem", "mem-per-cpu", "mem-per-gpu", "gres", "gpus-per-node", "gpus-per-task", "gpus-per-socket", "uid", "gid"),
    *("ntasks-per-node", "ntasks-per-core", "ntasks-per-socket", "ntasks-per-gpu", "mincpus", "tmp", "reservation"),
    *("mail-type", "mail-user", "export", "export-file", "comment", "wckey", "deadline", "time-min", "signal"),
    *("switches", "priority", "hint", "threads-per-core", "cores-per-socket", "sockets-per-node", "wrap", "open-mode"),
    *("cpus-per-gpu", "gpu-bind", "gpu-freq", "profile", "power", "prefer", "delay-boot", "cluster-constraint"),
    *("acctg-freq", "batch", "bb", "bbf", "container", "cpu-freq", "get-user-env", "mcs-label", "thread-spec"),
}

_NOT_SIMULATED = {
    *("contiguous", "spread-job", "use-min-nodes", "time-min", "deadline", "core-spec", "thread-spec", "mincpus"),
    *("ntasks-per-core", "ntasks-per-socket", "ntasks-per-gpu", "cores-per-socket", "sockets-per-node", "tmp"),
    *("threads-per-core", "extra-node-info", "hint", "gpus-per-task", "gpus-per-socket", "cpus-per-gpu", "mem-per-gpu"),
    *("bb", "bbf", "overcommit", "oversubscribe", "prefer", "delay-boot", "batch", "cluster-constraint", "clusters"),
    *("nodefile", "reboot", "power"),
}
_KNOWN_NEEDS = re.compile(r"(afterany|afterok|afternotok|aftercorr|after):|singleton")


def unknown_options(options: Mapping[str, str]) -> set[str]:
    """Those of a job's options that may matter and are not simulated."""
    found = {f"--{name}" for name in options.keys() & _NOT_SIMULATED}
    if options.get("exclusive", "") in ("mcs", "topo"):
        found.add(f"--exclusive={options['exclusive']}")
    if "*" in options.get("constraint", ""):
        found.add("--constraint with counts")
    needs = re.split("[,?]", options.get("dependency", ""))
    return found | {f"--dependency={need.partition(':')[0]}" for need in needs if need and not _KNOWN_NEEDS.match(need)}


def read_options(line: str) -> Mapping[str, str]:
    """The options of ``sbatch ...``, ``srun ...`` or ``salloc ...`` by long name; those without value are "yes".

    What stands behind the script's name is its own.
    """
    try:
        words = shlex.split(line)[1:]
    except ValueError:  # a quote that does not end: sacct cuts long lines
        words = line.split()[1:]
    options: dict[str, str] = {}
    while words:
        word = words.pop(0)
        # the script; all behind it are its own arguments
        if not word.startswith("-") or word == "-":
            break
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            if not equals:
                value = words.pop(0) if name in _WITH_VALUE and words else "yes"
        elif word[1] in _SHORT:
            name, value = _SHORT[word[1]], word[2:].removeprefix("=") or (words.pop(0) if words else "")
        else:
            name, value = _SHORT_FLAGS.get(word[1], word[1]), "yes"
        options[name] = value
    return options


# A job from a line of sacct: what it asked for by its fields and its command line.

_DEPENDENCY = re.compile(r"(afterany|afterok|afternotok|aftercorr|after)((?::[\d_]+(?:\+\d+)?)+)")
_LARGEST = 1e9  # number of anything that a job asks for
_ARRAY_LIMIT = re.compile(r"%(\d+)")


def read_job(row: RecordRow, job_id: str, zone: ZoneInfo | None) -> SlurmJob:
    options = read_options(row.text("SubmitLine"))
    submit, start, end = (row.date(name, zone) for name in ("Submit", "Start", "End"))
    hosts = row.text("NodeList")
    never_ran = is_nothing(hosts) and "nodelist" in row.fields
    state = row.text("State").split(" ")[0].rstrip("+").upper()
    # a job that never had a node never ran, whatever its dates say
    if never_ran or state == "PENDING":
        start = NEVER
    eligible = row.date("Eligible", zone) if "eligible" in row.fields else submit
    switches, switch_wait = _switches(row, options.get("switches", ""))
    for listed in (hosts, options.get("nodelist", ""), options.get("exclude", "")):
        try:
            read_hosts(listed)
        except ValueError:
            raise InputError(f"{row.place}: {listed!r} is not a list of hosts; write it as n[1-16] or n1,n2") from None
    needs, any_need, singleton = _needs(options.get("dependency", ""), options.get("job-name", ""))
    shown, priority = row.text("JobID"), row.text("Priority")
    array_limit = _ARRAY_LIMIT.search(options.get("array", ""))
    array, _, task = shown.partition("_")
    # Eligible later than Submit is a begin time, unless something else made the job wait
    waits = needs or singleton or row.text("Reason") in ("JobArrayTaskLimit", "Dependency")
    return SlurmJob(
        id=job_id,
        submit=submit,
        start=start,
        end=end,
        begin=eligible if eligible > submit + 1 and not waits and not task else NEVER,
        runtime=_runtime(row, start, end),
        limit=_limit(row),
        state=state,
        user=row.text("User"),
        account=row.text("Account"),
        partition=row.text("Partition"),
        # sacct names the one of several in which the job ran
        qos=options["qos"] if "," in options.get("qos", "") else row.text("QOS"),
        held="hold" in options or row.text("Reason").startswith("JobHeld"),
        runs_once="no-requeue" in options,
        runs_again="requeue" in options,
        nice=_whole(options.get("nice", "0").replace("yes", "100"), row, "--nice"),
        features=options.get("constraint") or row.text("Constraints"),
        nodelist=options.get("nodelist", ""),
        exclude=options.get("exclude", ""),
        switches=switches,
        switch_wait=switch_wait,
        licenses=options.get("licenses", ""),
        reservation=row.text("Reservation") or options.get("reservation", ""),
        array=array if task else "",
        task=int(task) if task.isdigit() else 0,
        array_limit=int(array_limit[1]) if task and array_limit else 0,
        needs=needs,
        any_need=any_need,
        singleton=singleton,
        hosts="" if never_ran else hosts,
        options=tuple(sorted(unknown_options(options))),
        priority=float(priority) if priority.replace(".", "", 1).isdigit() else math.nan,
        reason=row.text("Reason"),
        by_backfill="SchedBackfill" in row.text("Flags"),
        **_sizes(row, options),
    )


def _switches(row: RecordRow, text: str) -> tuple[int, float]:
    """The leaf switches of ``--switches=COUNT[@TIME]``, and the seconds for which the job waits for so few."""
    count, _, time = text.partition("@")
    try:
        number = int(count or 0)
        if not 0 <= number <= _LARGEST:
            raise ValueError(count)
        return number, read_minutes(time) if time else math.inf
    except ValueError:
        raise InputError(f"{row.place}: switches is {text!r}, not a number like 1 or 1@30:00") from None


def _sizes(row: RecordRow, options: Mapping[str, str]) -> dict[str, Any]:
    """Nodes, cpus, memory and generic resources that a job asks for; 0 nodes at most: no such limit."""
    asked, had = read_tres(row.text("ReqTRES")), read_tres(row.text("AllocTRES"))
    cpus = _whole(row.text("ReqCPUS") or asked.get("cpu") or row.text("NCPUS", "AllocCPUS"), row, "ReqCPUS")
    # what was asked for counts, not what the job had: another configuration may give it other nodes
    nodes = max(1, _whole(row.text("NNodes", "AllocNodes", "ReqNodes") or "1", row, "NNodes"))
    least, most = nodes, 0 if options else nodes
    first, dash, last = options.get("nodes", "").partition("-")
    if first.isdigit() and (not dash or last.isdigit()):
        least, most = max(1, int(first)), int(last) if dash else int(first)
    elif "node" in asked:
        least = max(1, int(float(asked["node"])))
        # without its command line nobody knows whether it asked for them
        most = least if least > 1 and not options else 0
    per_task = _whole(options.get("cpus-per-task", "1"), row, "--cpus-per-task")
    cpus_had = _whole(row.text("NCPUS", "AllocCPUS") or had.get("cpu") or "0", row, "NCPUS")
    memory, per_cpu = _memory(row, options, asked, cpus)
    gres, in_all = _gres(row, options, asked)
    # ReqTRES knows what a script asked for, too; a newer ReqMem is of all nodes as well
    old = row.text("ReqMem")
    text = asked.get("mem") or ("" if is_nothing(old) or old.endswith(("c", "n")) else old)
    try:
        memory_in_all = read_memory(text) if text else 0.0
    except ValueError:
        memory_in_all = 0.0
    return {
        "billing": float(_whole(had.get("billing") or asked.get("billing") or "0", row, "billing")),
        "nodes": least,
        "nodes_max": most,
        "cpus": max(1, cpus),
        "cpus_per_task": max(1, per_task),
        "tasks_per_node": _whole(options.get("ntasks-per-node", "0"), row, "--ntasks-per-node"),
        "memory": memory,
        "memory_per_cpu": per_cpu,
        "memory_in_all": memory_in_all,
        "gres": gres,
        "gres_in_all": in_all,
        "exclusive": options.get("exclusive", "no") in ("yes", "node", ""),
        "own_user": options.get("exclusive") == "user",
        "cpus_had": cpus_had,
    }


def _gres(row: RecordRow, options: Mapping[str, str], asked: Mapping[str, str]) -> tuple[dict[str, int], bool]:
    """Generic resources by name, or by name and type, and whether they are those of all nodes together."""
    # sbatch(1): --gres and --gpus-per-node are of a node, --gpus of all; without a command line ReqTRES is of all
    parts = [part for part in split_list(options.get("gres", "")) if part.lower() != "none"]
    parts += [f"gpu:{part}" for part in split_list(options.get("gpus-per-node", ""))]
    try:
        if parts:
            return _of_types(count_gres(part.removeprefix("gres/").removeprefix("gres:") for part in parts)), False
        if "gpus" in options:
            return _of_types(count_gres(f"gpu:{part}" for part in split_list(options["gpus"]))), True
        listed = {name[len("gres/") :]: text for name, text in asked.items() if name.startswith("gres/")}
        numbers = (float(x) if x.replace(".", "", 1).isdigit() else round(read_memory(x)) for x in listed.values())
        found = dict(zip(listed, map(int, numbers), strict=True))
    except ValueError as error:
        raise InputError(f"{row.place}: generic resources: {error} is not a number; write them as gpu:a100:2") from None
    return _of_types(found), True


def _of_types(counts: Mapping[str, int]) -> dict[str, int]:
    """Counts by type, and without one what is beyond them: of gpu=3 and gpu:a100=2 one more gpu."""
    typed = {name: count for name, count in counts.items() if ":" in name}
    rest = Counter({name: count for name, count in counts.items() if ":" not in name})
    for name, count in typed.items():
        rest[name.partition(":")[0]] -= count
    return typed | {name: count for name, count in rest.items() if count > 0}


def _memory(row: RecordRow, options: Mapping[str, str], asked: Mapping[str, str], cpus: int) -> tuple[float, bool]:
    """Megabytes, and whether they are per cpu."""
    try:
        if "mem-per-cpu" in options:
            return read_memory(options["mem-per-cpu"]) or ALL_MEMORY, True
        # sbatch(1), --mem=0: all memory of each node
        if "mem" in options:
            return read_memory(options["mem"]) or ALL_MEMORY, False
        # ReqMem before Slurm 21.08: 4000Mc per cpu, 4000Mn per node; of newer ones it is a total and says nothing
        old = row.text("ReqMem")
        if old.endswith(("c", "n")) and len(old) > 1:
            return read_memory(old) or ALL_MEMORY, old.endswith("c")
        if options or "mem" not in asked:
            return 0.0, False
        return read_memory(asked["mem"]) / max(1, cpus) or ALL_MEMORY, True
    except ValueError:
        raise InputError(f"{row.place}: an amount of memory that is not a number; write it as 4000M or 4G") from None


def _runtime(row: RecordRow, start: int, end: int) -> float:
    if "elapsedraw" in row.fields or "elapsed" in row.fields:
        text = row.text("ElapsedRaw", "Elapsed")
        try:
            # Elapsed leaves out the time in which a job was suspended, and its nodes were not free then
            suspended = "" if is_nothing(row.text("Suspended")) else row.text("Suspended")
            return read_duration(text or "0") + read_duration(suspended or "0")
        except ValueError:
            raise InputError(f"{row.place}: Elapsed is {text!r}, not seconds or 1-02:03:04") from None
    return float(max(0, end - start)) if NEVER not in (start, end) else 0.0


def _limit(row: RecordRow) -> float:
    name = "TimelimitRaw" if "timelimitraw" in row.fields else "Timelimit"
    text = row.text(name)
    if is_nothing(text):
        return math.inf
    try:
        return read_minutes(text)
    except ValueError:
        raise InputError(f"{row.place}: {name} is {text!r}, not minutes or 1-02:03:04") from None


def _whole(text: str, row: RecordRow, name: str) -> int:
    try:
        number = read_memory(text) if text[-1:] in "KMG" and text else float(text or 0)
        if abs(number) > _LARGEST:
            raise ValueError(text)
        return int(number)
    except ValueError:
        raise InputError(f"{row.place}: {name} is {text!r}, not a whole number") from None


def _needs(text: str, name: str) -> tuple[tuple[Need, ...], bool, str]:
    """What ``--dependency`` says: the jobs, whether one is enough, and the name if it is a singleton."""
    needs = []
    for kind, jobs in _DEPENDENCY.findall(text):
        # sbatch(1): after:job+minutes
        for job in filter(None, jobs.split(":")):
            number, _, minutes = job.partition("+")
            needs.append(Need(kind, number, float(minutes or 0) * MINUTE))
    return tuple(needs), "?" in text, name if "singleton" in text else ""


# The jobs of a log, by submission: those that were requeued once, those that ran when it began marked.

# not all of them, because ids of jobs that sacct does not show leave gaps, too
_COMPLETE = 0.8  # share of the job ids before the first end that a log from the very beginning has


class JobLog(msgspec.Struct, frozen=True):
    """The jobs of a log, by submission."""

    jobs: tuple[SlurmJob, ...]
    notes: tuple[str, ...] = ()  # what was skipped or assumed


def of_cluster(rows: Sequence[RecordRow], cluster: str) -> tuple[list[RecordRow], list[str]]:
    """The records of one cluster, where the column Cluster names several, and notes on the others.

    Raises:
        InputError: if there are several, and none is this one.
    """
    counts = Counter(row.text("Cluster") for row in rows)
    names = sorted(counts.keys() - {""})
    if len(names) < 2:
        return list(rows), []
    mine = [row for row in rows if row.text("Cluster") == cluster]
    if not mine:
        called = f"is called {cluster}" if cluster else "says no ClusterName"
        raise InputError(f"{rows[0].place}: records of the clusters {', '.join(names)}, and slurm.conf {called}")
    others = [f"{counts[name]:,} records of the cluster {name} were skipped" for name in names if name != cluster]
    return mine, others


def make_log(rows: Sequence[RecordRow], zone: ZoneInfo | None = None, account: Account | None = None) -> JobLog:
    """The jobs of sacct's records.

    Args:
        rows: the records, of one cluster.
        zone: of their dates; None where they are those of the clock's face.
        account: what became of the file's other records.

    Raises:
        InputError: naming the line.
    """
    skipped = Counter(
        {f"records {REASONS[why]}": each.count for why, each in account.left_out.items()} if account else {}
    )
    unfinished: Counter[str] = Counter()
    runs: defaultdict[str, list[SlurmJob]] = defaultdict(list)
    shifted = 0
    # sacct -D has a line for each run of a requeued job
    for row in rows:
        job_id = row.text("JobIDRaw", "JobID")
        if "." in job_id:
            skipped["steps of jobs"] += 1
            continue
        job = read_job(row, job_id, zone)
        if job.submit == NEVER:
            skipped["lines without submission"] += 1
            continue
        # dates in a zone that is not named are an hour off where the clock was changed while the job ran
        dated = job.started and job.end != NEVER and job.runtime > 0
        shifted += dated and abs(abs(job.end - job.start - job.runtime) - 60 * MINUTE) < 2
        unfinished[_why_no_run(job)] += 1
        runs[job_id].append(job)
    parts = sum(map(len, runs.values()))
    attempts = [_unresized(sorted(each, key=lambda job: (job.submit, job.start))) for each in runs.values()]
    resized = parts - sum(map(len, attempts))
    jobs = [_last_run(sorted(each, key=lambda job: (job.submit, job.end))) for each in attempts]
    if not jobs:
        raise InputError(f"{rows[0].place}: there is no job in it")
    # by first submission; tasks of an array, at its place, by their numbers
    jobs.sort(key=lambda job: (job.submitted, _number(job.array or job.id), job.task, job.id))
    jobs = _with_array_limits(jobs)
    notes = [f"{count:,} {records} were skipped" for records, count in skipped.items()]
    if resized:
        notes.append(
            f"{resized:,} records are of jobs that changed their size while they ran: they keep the first size"
        )
    if again := sum(map(len, attempts)) - len(runs):
        notes.append(f"{again:,} records are of attempts of jobs that were requeued later")
    if never := sum(count for why, count in unfinished.items() if why):
        reasons = ", ".join(f"{count:,} {REASONS[why]}" for why, count in sorted(unfinished.items()) if why)
        notes.append(f"{never:,} jobs count here, and decision workload leaves them out: {reasons}")
    if shifted:
        notes.append(
            f"{shifted:,} jobs ran an hour more or less than their dates say: the clock was changed; name the time zone"
        )
    jobs, begun = _mark_running(jobs)
    if begun:
        notes.append(f"{begun:,} jobs ran already when the log began: they keep their recorded start")
    return JobLog(tuple(jobs), tuple(notes))


def _number(job_id: str) -> int:
    return int(re.match(r"\d*", job_id)[0] or 0)  # type: ignore[index]


def _why_no_run(job: SlurmJob) -> str:
    """Why a workload of jobs that ran is without this one, as one of `REASONS`; "" where it ran."""
    if not job.started:
        return "never_started"
    if job.state in UNFINISHED or job.end == NEVER:
        return "not_ended"
    return "" if job.runtime > 0 else "no_time"


def _unresized(runs: Sequence[SlurmJob]) -> list[SlurmJob]:
    """The attempts of a job, where one that changed its size while it ran, with a record for each size, is one."""
    kept: list[SlurmJob] = []
    for job in runs:
        before = kept[-1] if kept else None
        if before is not None and before.state == "RESIZING" and before.submit == job.submit:
            end = {"end": job.end, "state": job.state, "runtime": before.runtime + job.runtime}
            kept[-1] = msgspec.structs.replace(before, **end)
        else:
            kept.append(job)
    return kept


def _last_run(runs: Sequence[SlurmJob]) -> SlurmJob:
    """A job that was requeued, as its last line has it; it may begin where its first one does."""
    last = runs[-1]
    if len(runs) == 1:
        return last
    # what Slurm did between them (preemption, failure) is simulated, so the job begins where its first run does
    first = runs[0]
    return msgspec.structs.replace(last, first_submit=first.submit, requeues=len(runs) - 1, begin=first.begin)


def _with_array_limits(jobs: Iterable[SlurmJob]) -> list[SlurmJob]:
    """Where the limit of an array is unknown and its tasks waited for one: as many as ever ran together."""
    jobs = list(jobs)
    arrays: defaultdict[str, list[SlurmJob]] = defaultdict(list)
    for job in jobs:
        if job.array:
            arrays[job.array].append(job)
    # sbatch's line may be missing: %N of an array then shows only in the reason JobArrayTaskLimit
    limits = {
        name: most_together(tasks)
        for name, tasks in arrays.items()
        if any(task.reason == "JobArrayTaskLimit" for task in tasks) and not any(task.array_limit for task in tasks)
    }
    return [msgspec.structs.replace(job, array_limit=limits[job.array]) if job.array in limits else job for job in jobs]


def most_together(jobs: Iterable[SlurmJob]) -> int:
    """How many of these jobs ran at the same time at most, at least 1."""
    ran = [job for job in jobs if job.started]
    steps = sorted([(job.start, 1) for job in ran] + [(job.start + max(1, job.runtime), -1) for job in ran])
    return max([1, *accumulate(step for _, step in steps)])


def _mark_running(jobs: list[SlurmJob]) -> tuple[list[SlurmJob], int]:
    """Mark the jobs that ran when the log began, and count them.

    A log that was cut has only those of the earlier jobs that were still there: their ids have gaps.
    """
    ends = [job.start + job.runtime for job in jobs if job.started]
    if not ends:
        return jobs, 0
    # nothing that ended before is in a log that was cut, and so this is when the log really begins
    begin = min(ends)
    early = {_number(job.array or job.id) for job in jobs if job.submitted <= begin}
    known = {_number(name) for job in jobs for name in (job.id, job.array) if name}
    span = range(min(early, default=0), max(early, default=0) + 1)
    if not early or sum(number in span for number in known) >= _COMPLETE * len(span):
        return jobs, 0
    marked = [msgspec.structs.replace(job, before=True) if job.started and job.start < begin else job for job in jobs]
    return marked, sum(job.before for job in marked)


def cluster_hosts(jobs: Iterable[SlurmJob]) -> list[str]:
    """All hosts that jobs of the log had."""
    names: dict[str, None] = {}
    for job in jobs:
        names.update(dict.fromkeys(read_hosts(job.hosts)))
    return sorted(names)
