"""``decision gates``: whether a learned policy may be deployed."""

from typing import Annotated

import typer

from decision.model.errors import PolicyError

from .grouped import Chosen, with_groups
from .options import EventsOption, JsonOption, PlatformOption, WorkloadOption

Checkpoint = Annotated[
    str, typer.Argument(help="Made by decision train; or the name of a learned policy that is shipped.")
]


@with_groups
def gates_command(
    checkpoint: Checkpoint,
    platform: PlatformOption,
    workload: WorkloadOption,
    events: EventsOption = None,
    *,
    chosen: Chosen,
    as_json: JsonOption = False,
) -> None:
    """Check whether a checkpoint may be deployed, on a log that it has not seen.

    The log is run on ten copies with shaken submissions. Against FCFS with EASY:
    mean wait and mean bounded slowdown are not above; the longest wait is at most
    1.5 times as long in the median of the copies, and twice as long on any; and
    on a nearly idle machine no job waits that would not wait. And the schedule is the same in a run,
    through Batsim's messages, and on the engine in plain Python. Of a packer,
    which is for utilization, no more room may be idle up to the last end than
    under EASY, in place of the first three.

    A checkpoint for servers that sleep (joint, deepscheduling) runs each day of
    the log, against first-fit with a timeout of 5 minutes on the same servers:
    mean wait at most 1.1 times and longest wait at most 1.5 times as long, and
    neither waste nor switches above.

    A checkpoint that knows what jobs are worth (green, timetable) runs under the
    supply of power of --events, if there is one: it misses no more value than
    density+first-fit,suspend=density and than qos+first-fit, and no more value
    is violated than under FCFS with EASY.

    Writes what it finds into the checkpoint's manifest, with the hashes of
    platform, log and supply; a shipped checkpoint stays as it is. decision run and serve
    refuse a checkpoint that was not checked or fails on one of its logs, unless
    --force is given. Exit codes: 0 if all gates are passed, 2 if not.

    Examples:

      decision gates learned/ranking.ckpt -p cluster.xml -w log.swf

      decision gates learned -p cluster.xml -w log.swf

      decision gates timetable -p ten.xml -w green.json --events supply.txt
    """
    from decision.learn import SHIPPED_NAMES, existing_checkpoint
    from decision.learn.gates import require_unseen
    from decision.runs.gates import check_gates, keep_check, lets_sleep
    from decision.runs.inputs import Inputs, first_log, load_inputs

    from .learning_tables import print_gates
    from .progress import announce_compilation, working
    from .tables import print_dropped, print_json
    from .terminal import note

    file = existing_checkpoint(checkpoint)
    selection = chosen.read()
    energy = lets_sleep(file)
    case = load_inputs(
        Inputs(platform=platform, workloads=(workload,), events=tuple(events or ()), selection=selection, energy=energy)
    )
    print_dropped(case.workloads)
    if text := require_unseen(checkpoint, case.workloads[0]):
        note(f"warning: {text}; gates are for jobs that nothing was learned from")
    announce_compilation()
    with working(file.name):
        check = check_gates(file, first_log(case))
    if checkpoint not in SHIPPED_NAMES:
        keep_check(file, check)
    if as_json:
        rows = [{"gate": g.name, "found": g.found, "most": g.most, "passed": g.passed} for g in check.gates]
        print_json({"checkpoint": checkpoint, "jobs": check.jobs, "gates": rows})
    else:
        print_gates(check)
    failed = [gate.name for gate in check.gates if not gate.passed]
    if failed:
        raise PolicyError(f"{checkpoint} fails on {workload}: {', '.join(failed)}")
