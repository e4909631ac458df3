"""Small logs of every text format, made by documented fields: name by name, as their bytes."""

import json

DAY = 1_700_000_000  # Unix seconds of the first submission


def _stamp(seconds: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _times(job: int) -> tuple[int, int, int]:
    """Submission, start and end of a job."""
    submit = DAY + 60 * job
    return submit, submit + 30, submit + 30 + 100 + job


def swf(jobs: int = 30, header: bool = True, between: str = " ", rest: str = "") -> bytes:
    lines = ["; MaxProcs: 64"] if header else []
    for job in range(1, jobs + 1):
        size = 1 + job % 4
        fields = [job, 60 * job, 30, 100 + job, size, -1, -1, size, 600, -1, 1, job % 3, 1, 1, 1, 1, -1, -1]
        lines.append(between.join(map(str, fields)) + rest)
    return ("\n".join(lines) + "\n").encode()


def gwf(jobs: int = 30) -> bytes:
    lines = ["# a grid"]
    for job in range(1, jobs + 1):
        fields = [job, 60 * job, 30, 100 + job, 2, -1, -1, 2, 600, -1, 1, f"u{job % 3}", *"gxqp", *["-1"] * 13]
        lines.append("\t".join(map(str, fields)))
    return ("\n".join(lines) + "\n").encode()


SACCT = "JobID|User|Account|JobName|Submit|Start|End|Elapsed|State|NNodes|NCPUS|Timelimit|NodeList"


def sacct(jobs: int = 30, end: str = "") -> bytes:
    lines = [SACCT + end]
    for job in range(1, jobs + 1):
        times = "|".join(map(_stamp, _times(job)))
        lines.append(
            f"{job}|u{job % 3}|acc|job|{times}|00:{1 + (40 + job) // 60:02d}:{(40 + job) % 60:02d}|COMPLETED|2|8|"
            f"01:00:00|n[{2 * job}-{2 * job + 1}]{end}"
        )
    return ("\n".join(lines) + "\n").encode()


def xdmod(jobs: int = 30) -> bytes:
    """Open XDMoD's 26 columns, without a header."""
    lines = []
    for job in range(1, jobs + 1):
        submit, start, end = map(_stamp, _times(job))
        span = f"00:{(100 + job) // 60:02d}:{(100 + job) % 60:02d}"
        lines.append(
            f"{job}|{job}|c|p|q|acc|g|10|u{job % 3}|100|{submit}|{submit}|{start}|{end}|{span}|0:0|COMPLETED|2|8|8|"
            f"100Mn|cpu=8,node=2|billing=8,cpu=8,mem=200M,node=2|01:00:00|n[{2 * job}-{2 * job + 1}]|job {job}"
        )
    return ("\n".join(lines) + "\n").encode()


def sacct_json(jobs: int = 30) -> bytes:
    def job(number: int) -> dict[str, object]:
        submit, start, end = _times(number)
        return {
            "job_id": number,
            "time": {"submission": submit, "start": start, "end": end, "elapsed": end - start, "limit": {"number": 60}},
            "state": {"current": ["COMPLETED"]},
            "nodes": f"n{number}",
            "association": {"account": "a"},
            "user": f"u{number % 3}",
            "tres": {"allocated": [{"type": "cpu", "count": 4}, {"type": "node", "count": 1}], "requested": []},
        }

    return json.dumps({"jobs": [job(number) for number in range(1, jobs + 1)]}, indent=1).encode()


def condor(jobs: int = 30) -> bytes:
    names = ("QDate", "JobCurrentStartDate", "CompletionDate")
    rows = [
        {**dict(zip(names, _times(job), strict=True)), "ClusterId": job, "ProcId": 0, "Owner": "u", "RequestCpus": 4}
        for job in range(1, jobs + 1)
    ]
    return json.dumps(rows, indent=1).encode()


def flux(jobs: int = 30) -> bytes:
    names = ("t_submit", "t_run", "t_cleanup")
    rows = [
        {**dict(zip(names, _times(job), strict=True)), "id": job, "duration": 3600.0, "nnodes": 1, "ncores": 8}
        | {"nodelist": f"n{job}", "result": "COMPLETED"}
        for job in range(1, jobs + 1)
    ]
    return json.dumps({"jobs": rows}).encode()


def philly(jobs: int = 30) -> bytes:
    rows = []
    for job in range(1, jobs + 1):
        submit, start, end = (_stamp(time).replace("T", " ") for time in _times(job))
        detail = [{"ip": f"m{job}", "gpus": ["gpu0", "gpu1"]}]
        attempt = {"start_time": start, "end_time": end, "detail": detail}
        rows.append({"status": "Pass", "vc": "v", "jobid": f"a{job}", "attempts": [attempt], "submitted_time": submit})
    return json.dumps(rows).encode()


def pbs(jobs: int = 30) -> bytes:
    lines = []
    for job in range(1, jobs + 1):
        submit, start, end = _times(job)
        lines += [
            f"11/14/2023 22:13:20;Q;{job}.srv;queue=batch",
            f"11/14/2023 22:13:20;E;{job}.srv;user=u{job % 3} group=g queue=batch ctime={submit} qtime={submit} "
            f"start={start} exec_host=n{job}/0-3+m{job}/0*4 Resource_List.walltime=01:00:00 end={end} Exit_status=0",
        ]
    return ("\n".join(lines) + "\n").encode()


def lsf(jobs: int = 30) -> bytes:
    lines = []
    for job in range(1, jobs + 1):
        submit, start, end = _times(job)
        rusage = " ".join(["0"] * 19)
        lines.append(
            f'"JOB_FINISH" "9.11" {end} {job} 500 33554434 4 {submit} 0 0 {start} "u{job % 3}" "q" "" "" "" "sub" '
            f'"cwd" "" "" "" "{submit}.{job}" 0 2 "2*h{job}" "2*g{job}" 64 60.0 "n" "cmd" {rusage} "" "default" 0 4'
        )
    return ("\n".join(lines) + "\n").encode()


def sge(jobs: int = 30, scale: int = 1) -> bytes:
    lines = ["# Version: 8"]
    for job in range(1, jobs + 1):
        submit, start, end = (scale * time for time in _times(job))
        usage = ":".join(["0"] * 18)
        lines.append(
            f"all.q:n{job}:g:u{job % 3}:job:{job}:sge:0:{submit}:{start}:{end}:0:0:{usage}:p:dept:mpi:4:0:1.0:0.1:0.0:"
            "-u ann -l h_rt=3600 -pe mpi 4:0.0:NONE:1048576.0:0:0"
        )
    return ("\n".join(lines) + "\n").encode()


def oar(jobs: int = 30) -> bytes:
    lines = ["job_id,submission_time,start_time,stop_time,walltime,resources"]
    lines += [f"{job},{','.join(map(str, _times(job)))},3600,{job % 8}-{job % 8 + 3}" for job in range(1, jobs + 1)]
    return ("\n".join(lines) + "\n").encode()


def djc(jobs: int = 30) -> bytes:
    lines = ["JOB_NAME,QUEUED_TIMESTAMP,START_TIMESTAMP,END_TIMESTAMP,NODES_USED,WALLTIME_SECONDS,USERNAME_GENID"]
    for job in range(1, jobs + 1):
        times = ",".join(_stamp(time).replace("T", " ") for time in _times(job))
        lines.append(f"{job}.srv,{times},4,3600.0,u{job % 3}")
    return ("\n".join(lines) + "\n").encode()


LINES = {  # of a record a line
    "swf": swf(),
    "swf-21": swf(header=False, rest=" 1,2 q_2h :mem=1gb"),
    "swf-semicolons": swf(header=False, between=";"),
    "gwf": gwf(),
    "sacct": sacct(),
    "sacct-parsable": sacct(end="|"),
    "xdmod": xdmod(),
    "pbs": pbs(),
    "lsf": lsf(),
    "sge": sge(),
    "uge": sge(scale=1000),
    "oar": oar(),
    "djc": djc(),
}
SAMPLES = {**LINES, "sacct-json": sacct_json(), "condor": condor(), "flux": flux(), "philly": philly()}
FORMATS = {"swf-21": "swf", "swf-semicolons": "swf", "sacct-parsable": "sacct", "xdmod": "sacct", "uge": "sge"}
