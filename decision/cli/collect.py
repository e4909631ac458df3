"""``decision collect``: what policies choose, to learn from."""

from pathlib import Path
from typing import Annotated

import typer

from decision.model.errors import ConfigError

from .command import Chosen, with_groups
from .options import EpisodeOptions, EventsOption, JsonOption, OutputFile, PlatformOption, SeedOption, WorkloadOption
from .train import Changes

_MOST = 100_000_000

Policies = Annotated[
    list[str] | None, typer.Argument(help="Heuristics, as for decision run.", metavar="POLICY...", show_default=False)
]
Session = Annotated[
    Path | None,
    typer.Option(
        "--from",
        help="Instead: what any scheduler did in a session that decision serve --record (or another recorder) wrote, "
        "or in a run of Batsim's: its folder, or the prefix of its files.",
        metavar="SESSION.jsonl|RUN",
    ),
]
Transitions = Annotated[
    int, typer.Option("--transitions", help="Number of starts and decisions in all, at least.", min=1, max=_MOST)
]
Shares = Annotated[
    list[float] | None,
    typer.Option("--share", help="Share of each policy, in their order; equal by default.", metavar="SHARE"),
]
ForPreset = Annotated[
    str,
    typer.Option("--for", help="Preset of the scheduler that will learn; its episodes are recorded.", metavar="PRESET"),
]
Minari = Annotated[
    str | None,
    typer.Option(
        "--minari",
        help="Also give Minari a data set of what the preset's network sees, for learners of other libraries.",
        metavar="GROUP/NAME-v0",
    ),
]


@with_groups
def collect_command(
    platform: PlatformOption,
    workload: WorkloadOption,
    output: OutputFile,
    policies: Policies = None,
    session: Session = None,
    transitions: Transitions = 200_000,
    shares: Shares = None,
    preset: ForPreset = "dbf-bc",
    changes: Changes = None,
    minari: Minari = None,
    seed: SeedOption = 0,
    *,
    chosen: Chosen,
    events: EventsOption = None,
    simulator: EpisodeOptions,
    as_json: JsonOption = False,
) -> None:
    """Record what policies choose, for decision train --data.

    Each policy schedules random episodes of the workload, as long as those of the
    preset, until it has its share of the transitions (a transition is a start, or
    a decision). The file keeps where episodes began and how long their jobs
    waited. What a network sees is made again from that when it learns, so the
    file serves any observation, and 200,000 transitions take less than 1 MB.
    --engine batsim plays the episodes in a Batsim.

    --from takes one episode, the whole workload, from a recorded session instead,
    or from the out_jobs.csv that Batsim wrote (--from out/out).

    Examples:

      decision collect sjf+easy -p cluster.xml -w log.swf -o sjf.choices

      decision collect easy sjf+easy --share 0.75 --share 0.25 -p cluster.xml \\
          -w log.swf --transitions 100000 -o mixed.choices

      decision collect qos+first-fit fcfs --for green-bc -p ten.xml -w green.json \\
          --events supply.txt -o two.choices

      decision collect --from session.jsonl -p cluster.xml -w work.json \\
          -o theirs.choices

      decision collect sjf+easy -p cluster.xml -w log.swf -o sjf.choices \\
          --minari batsim/sjf-v0
    """
    from decision.experiments.inputs import Inputs, first_log, load_inputs
    from decision.files.workload import Selection
    from decision.rl.learning import require_learning
    from decision.rl.learning.config import load_config

    from .tables import print_dropped, print_json, simple_table
    from .terminal import announce_compilation, note, stdout, working

    if bool(policies) == (session is not None):
        raise ConfigError("name policies, or a recorded session with --from, and not both")
    config = load_config(preset, changes or ())
    selection = chosen.read()
    supply = tuple(events or ())
    case = load_inputs(Inputs(platform=platform, workloads=(workload,), events=supply, selection=selection))
    print_dropped(case.workloads)
    require_learning()
    if minari is not None:
        from decision.rl.learning.choices import check_minari, export_minari

        check_minari(minari)
    from decision.batsim.conversation import recorded_starts
    from decision.rl.learning.choices import collect, from_session, run_starts, whole_episode, write_choices
    from decision.rl.learning.schedulers import choosing_setup

    batsim = simulator.read()

    announce_compilation()
    log = first_log(case)
    if session is not None:
        config = whole_episode(config, log.workload)
    setup = choosing_setup(config, log.workload, log.platform, log.events, batsim)
    with working("recording"):
        if session is not None:
            recorded = recorded_starts(session) if session.is_file() else run_starts(session)
            sources, schedules = from_session(session.name, *recorded, setup)
        else:
            sources, schedules = collect(_shares(policies or [], shares), setup, transitions, seed)
    write_choices(output, schedules, setup, log.files, selection, sources, seed)
    if minari is not None:
        given = {"workload": workload, "platform": platform, **({"events": supply[0]} if supply else {})}
        paths = given if selection == Selection() and len(supply) < 2 else {}
        episodes = export_minari(minari, schedules, setup, ", ".join(source.policy for source in sources), paths)
        note(f"{minari}: {episodes:,} episodes that minari.load_dataset reads")
    if as_json:
        print_json({"choices": output, "bytes": Path(output).stat().st_size, "sources": sources})
        return
    table = simple_table("policy", ">episodes", ">transitions")
    for source in sources:
        table.add_row(source.policy, f"{source.episodes:,}", f"{source.transitions:,}")
    stdout().print(table)
    note(f"{output}: {Path(output).stat().st_size:,} bytes")
    if session is not None:
        note(f"one episode: train with --set env.jobs={setup.rules.jobs} --set env.online=false")


def _shares(policies: list[str], shares: list[float] | None) -> dict[str, float]:
    """Each policy's share. Raises ConfigError if they are not one positive number each, or a policy is named twice."""
    given = shares or [1.0] * len(policies)
    if len(set(policies)) < len(policies):
        raise ConfigError("a policy is named twice; name it once, with the share that it shall have")
    if len(given) != len(policies) or not all(0 < share < float("inf") for share in given):
        raise ConfigError(f"--share: each of the {len(policies)} policies needs one, above 0; found {given}")
    return {policy: share / sum(given) for policy, share in zip(policies, given, strict=True)}
