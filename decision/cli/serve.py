"""``decision serve``: the decision process that a Batsim, started by somebody else, talks to."""

from pathlib import Path
from typing import Annotated

import typer

from .options import (
    DEFAULT_TIMEOUT,
    PolicyOption,
    PolicySettings,
    SeedOption,
    TimeoutOption,
    read_settings,
)


def serve(
    policy: PolicyOption,
    option: PolicySettings = None,
    endpoint: Annotated[
        str, typer.Option("--endpoint", "-s", help="Where to listen; Batsim's default port.", metavar="ENDPOINT")
    ] = "tcp://127.0.0.1:28000",
    platform: Annotated[
        Path | None,
        typer.Option(
            "--platform",
            "-p",
            help="The platform that Batsim simulates, for a policy that wants speeds and power: Batsim sends none.",
            metavar="FILE",
        ),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option("--record", help="Write every message, both ways, to this file (JSON lines).", metavar="FILE"),
    ] = None,
    seed: SeedOption = 0,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Schedule for a Batsim that you start yourself.

    Listens, answers each of Batsim's messages with the policy's decisions, and
    ends when the simulation ends. Ctrl-C ends it earlier; a recording is
    complete up to there.

    Examples:

      decision serve --policy easy

      decision serve --policy conservative --record session.jsonl --timeout 60

    and then, in another terminal:

      batsim -p platform.xml -w workload.json -e out/out
    """
    from decision.drivers.agents import make_agent
    from decision.drivers.zmq_loop import serve as serve_agent
    from decision.formats import load_platform

    from .progress import announce_compilation
    from .tables import print_conversation
    from .terminal import stderr

    facts = load_platform(platform) if platform else None
    announce_compilation()
    agent = make_agent(policy, read_settings(option), platform=facts, seed=seed)
    stderr().print(f"{policy} waits for Batsim at {endpoint}", highlight=False)
    print_conversation(serve_agent(agent, endpoint, timeout=timeout, record=record))
