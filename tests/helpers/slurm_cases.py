"""Cases of Slurm for tests: recordings, and small clusters made of lines."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from decision.slurm.case import Case, Sources, load_case, read_case, write_case
from decision.slurm.conf import Settings
from decision.slurm.simulate import simulate_case
from decision.slurm.text import write_date

DATA = Path(__file__).parent.parent / "data" / "slurm"
EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "slurm"
HEADER = "JobIDRaw|JobID|User|Account|Partition|QOS|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|State|NNodes|"
HEADER += "NCPUS|ReqCPUS|ReqTRES|NodeList|Reason|Flags|SubmitLine"
CONF = """ClusterName=toy
SelectType=select/linear
SchedulerType=sched/backfill
PriorityType=priority/basic
NodeName=n[1-4] CPUs=1
PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE
"""
BEGIN = 1_772_438_400  # 2026-03-02T08:00:00


def recording(name: str, *, cycles: bool = True) -> Case:
    """A recording of a real Slurm, with the times of its cycles of backfill or without."""
    folder = EXAMPLE if name == "coarse_backfill" else DATA / name

    def found(file: str) -> Path | None:
        path = folder / file
        return path if path.is_file() else None

    sources = Sources(
        conf=folder / "slurm.conf",
        jobs=folder / "sacct.txt",
        assoc=found("assoc.txt"),
        qos=found("qos.txt"),
        shares=found("sshare.txt"),
        cycles=found("cycles.txt") if cycles else None,
        config=found("config.txt"),
    )
    case, _ = read_case(sources)
    return msgspec.structs.replace(case, folder=str(folder))


def line(number: int, submit: int, size: int, limit: int, runtime: int, *, options: str = "", **more: str) -> str:
    """A job of sacct that started when it was submitted.

    Args:
        number: its id.
        submit: seconds after `BEGIN`.
        size: nodes, of a cpu each.
        limit: minutes.
        runtime: seconds.
        options: of sbatch.
        more: other columns.
    """
    when = write_date(BEGIN + submit)
    row = {
        **dict.fromkeys(("JobIDRaw", "JobID"), str(number)),
        **{"User": "u", "Account": "a", "Partition": "p", "QOS": "normal", "Submit": when, "Eligible": when},
        **{"Start": when, "End": write_date(BEGIN + submit + runtime), "ElapsedRaw": str(runtime)},
        **{"TimelimitRaw": str(limit), "State": "COMPLETED", "NNodes": str(size), "NCPUS": str(size)},
        **{"ReqCPUS": str(size), "ReqTRES": f"cpu={size},node={size}", "NodeList": f"n[1-{size}]", "Reason": "None"},
        **{"Flags": "SchedMain", "SubmitLine": f"sbatch -N {size} {options} job.sh"},
        **more,
    }
    return "|".join(row[name] for name in HEADER.split("|"))


def toy(folder: Path, lines: Sequence[str], conf: str = CONF, suffix: str = ".txt", **files: str) -> Case:
    """A case of a small cluster; `files` are the texts of further sources by name, whose paths end in `suffix`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "in.conf").write_text(conf)
    (folder / "sacct.txt").write_text("\n".join([HEADER, *lines]) + "\n")
    paths = {}
    for name, text in files.items():
        paths[name] = folder / f"{name}{suffix}"
        paths[name].write_text(text)
    case, found = read_case(Sources(conf=folder / "in.conf", jobs=folder / "sacct.txt", **paths))
    write_case(case, found, folder / "case")
    return load_case(folder / "case")


def starts(case: Case, changes: Mapping[str, str] | None = None) -> dict[str, float]:
    """When each job starts in the model, seconds after `BEGIN`."""
    run = simulate_case(case, Settings(case.conf).changing({"completing": "1", **(changes or {})}))
    return {job.id: start - BEGIN for job, start in zip(case.jobs, run.start, strict=True)}
