"""A real Slurm on this machine: a controller, some nodes, no database; to record jobs, under a fast clock.

Then all processes share one clock of libfaketime, and jobs run `sleep`. Everything is in one folder; the machine's own
configuration is not used.
"""

import getpass
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

DAEMONS = ("slurmctld", "slurmd", "sbatch", "scontrol")
PROGRAMS = (*DAEMONS, "faketime")
SPEED = 60  # times as fast as the clock
_BEGIN = "2026-03-02 08:00:00"
_LIMIT = 150  # seconds that a recording takes at most
_COLUMNS = {
    **{"JobIDRaw": "JobId", "Submit": "SubmitTime", "Eligible": "EligibleTime", "Start": "StartTime", "End": "EndTime"},
    **{"TimelimitRaw": "TimeLimit", "State": "JobState", "NNodes": "NumNodes", "ReqCPUS": "NumCPUs"},
    **{"NodeList": "NodeList", "Partition": "Partition", "User": "UserId"},
}


class RealJob(NamedTuple):
    """A job to submit."""

    submit: float  # seconds of the fast clock after the nodes are up
    seconds: int  # that it sleeps
    options: str


def missing(programs: Sequence[str] = PROGRAMS) -> list[str]:
    """The programs that are not there."""
    return [name for name in programs if shutil.which(name, path=_path()) is None]


def _path() -> str:
    return os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin"])


def record(folder: Path, nodes: int, parameters: str, jobs: Sequence[RealJob]) -> tuple[Path, Path, Path]:
    """Run jobs; returns slurm.conf, a log as sacct prints it, and slurmctld's log."""
    conf = folder / "slurm.conf"
    conf.write_text(_conf(folder, nodes, parameters))
    (folder / "job.sh").write_text('#!/bin/sh\nsleep "$1"\n')
    with _running(folder, nodes, ["faketime", "-m", "-f", f"@{_BEGIN} x{SPEED}"]) as environment:
        begin = time.monotonic()
        for job in sorted(jobs):
            time.sleep(max(0.0, begin + job.submit / SPEED - time.monotonic()))
            command = ["sbatch", "-o", "/dev/null", "-D", "/tmp", *job.options.split(), str(folder / "job.sh")]
            subprocess.run([*command, str(job.seconds)], env=environment, check=True, capture_output=True)
        shown = _wait(environment, begin)
    log = folder / "sacct.txt"
    log.write_text(_as_sacct(shown))
    return conf, log, folder / "slurmctld.log"


@contextmanager
def cluster(folder: Path, nodes: int) -> Iterator[dict[str, str]]:
    """Nodes that run jobs in real time; yields the environment in which Slurm's commands know them."""
    (folder / "slurm.conf").write_text(_conf(folder, nodes, "SchedulerParameters=sched_interval=1,batch_sched_delay=0"))
    with _running(folder, nodes, []) as environment:
        yield environment


def _conf(folder: Path, nodes: int, parameters: str) -> str:
    ports = _free_ports(nodes + 1)
    user, host = getpass.getuser(), socket.gethostname()
    lines = [
        *("ClusterName=test", f"SlurmctldHost={host}(127.0.0.1)", f"SlurmctldPort={ports[0]}", f"SlurmUser={user}"),
        *(f"SlurmdUser={user}", "AuthType=auth/none", "CredType=cred/none", "ProctrackType=proctrack/linuxproc"),
        *("TaskPlugin=task/none", "SwitchType=switch/none", "MpiDefault=none", "ReturnToService=2"),
        *(f"StateSaveLocation={folder}/state", f"SlurmdSpoolDir={folder}/spool.%n", "SlurmdTimeout=0"),
        *(f"SlurmctldPidFile={folder}/slurmctld.pid", f"SlurmdPidFile={folder}/slurmd.%n.pid"),
        *(f"SlurmctldLogFile={folder}/slurmctld.log", f"SlurmdLogFile={folder}/slurmd.%n.log", "TCPTimeout=100"),
        *("MessageTimeout=100", "BatchStartTimeout=600", "MinJobAge=100000", "JobAcctGatherType=jobacct_gather/none"),
        *("AccountingStorageType=accounting_storage/none", "DebugFlags=Backfill", "MailProg=/bin/true"),
        *("SlurmdParameters=config_overrides", "SelectType=select/linear", parameters),
    ]
    for number, port in enumerate(ports[1:], 1):
        lines.append(f"NodeName=n{number} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs=1 RealMemory=100")
    lines.append(f"PartitionName=p Nodes=n[1-{nodes}] Default=YES MaxTime=INFINITE State=UP")
    return "\n".join(lines) + "\n"


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


@contextmanager
def _running(folder: Path, nodes: int, clock: Sequence[str]) -> Iterator[dict[str, str]]:
    """The daemons, in a process group of their own that ends with the recording; yields their environment."""
    (folder / "state").mkdir()
    slurmds = "".join(f"slurmd -D -N n{k} > /dev/null 2>&1 &\n" for k in range(1, nodes + 1))
    (folder / "start.sh").write_text(
        f"env > {folder}/env.new; mv {folder}/env.new {folder}/env\n"
        f"slurmctld -D -c > {folder}/slurmctld.out 2>&1 &\n{slurmds}wait\n"
    )
    environment = {**os.environ, "PATH": _path(), "TZ": "UTC", "FAKETIME_DONT_RESET": "1"}
    environment["SLURM_CONF"] = str(folder / "slurm.conf")
    daemons = subprocess.Popen([*clock, "sh", str(folder / "start.sh")], env=environment, start_new_session=True)
    try:
        yield _until_up(folder, nodes)
    finally:
        os.killpg(daemons.pid, signal.SIGKILL)
        daemons.wait()


def _until_up(folder: Path, nodes: int) -> dict[str, str]:
    end = time.monotonic() + 40
    while time.monotonic() < end:
        time.sleep(0.3)
        if not (folder / "env").is_file():
            continue
        text = (folder / "env").read_text()
        environment = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
        shown = subprocess.run(["scontrol", "show", "node", "-o"], env=environment, capture_output=True, text=True)
        if shown.stdout.count(" State=IDLE ") == nodes:
            return environment
    raise TimeoutError(f"the nodes of a real Slurm did not come up; see {folder}/slurmctld.log")


def _wait(environment: dict[str, str], begin: float) -> str:
    while True:
        time.sleep(1)
        shown = subprocess.run(["scontrol", "show", "job", "-o"], env=environment, capture_output=True, text=True)
        if not re.search(r"JobState=(PENDING|RUNNING|COMPLETING)", shown.stdout):
            return shown.stdout
        if time.monotonic() > begin + _LIMIT:
            raise TimeoutError("jobs of a real Slurm did not end")


def _as_sacct(shown: str) -> str:
    """What ``scontrol show job -o`` says as ``sacct -P`` does, which needs a database."""
    rows = ["|".join(_COLUMNS)]
    for line in shown.splitlines():
        fields = dict(part.split("=", 1) for part in line.split() if "=" in part)
        if fields.get("JobId"):
            fields["UserId"] = fields["UserId"].partition("(")[0]
            fields["NumNodes"] = fields["NumNodes"].partition("-")[0]
            hours, minutes, _ = (int(part) for part in fields["TimeLimit"].rpartition("-")[2].split(":"))
            fields["TimeLimit"] = str(60 * hours + minutes)
            rows.append("|".join(fields[name] for name in _COLUMNS.values()))
    return "\n".join(rows) + "\n"
