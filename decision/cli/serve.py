"""``decision serve`` and ``decision replay``: the decision process for a Batsim, or for the recording of one."""

from pathlib import Path
from typing import Annotated

from .declared import Argument, Option
from .options import (
    DEFAULT_DECIDE_LIMIT,
    DEFAULT_TIMEOUT,
    DecideLimitOption,
    ForceOption,
    JsonOption,
    PolicyOption,
    SeedOption,
    SettingsOption,
    TimeoutOption,
    read_pairs,
)

Endpoint = Annotated[
    str, Option("--endpoint", "-s", help="ZeroMQ endpoint to listen at; Batsim's default port.", metavar="ENDPOINT")
]
KnownPlatform = Annotated[
    Path | None,
    Option(
        "--platform",
        "-p",
        help="Platform that Batsim simulates, for policies that use speeds, power or topology, which Batsim does not "
        "send.",
        metavar="FILE",
    ),
]
Recording = Annotated[
    Path | None, Option("--record", help="Record all messages to this file (JSON lines).", metavar="FILE")
]
Session = Annotated[Path, Argument(help="Recording made by decision serve --record.", metavar="SESSION.jsonl")]


def serve_command(
    policy: PolicyOption,
    settings: SettingsOption = None,
    endpoint: Endpoint = "tcp://127.0.0.1:28000",
    platform: KnownPlatform = None,
    record: Recording = None,
    seed: SeedOption = 0,
    force: ForceOption = False,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    decide_limit: DecideLimitOption = DEFAULT_DECIDE_LIMIT,
    as_json: JsonOption = False,
) -> None:
    """Schedule for a Batsim that you start yourself.

    Listens, answers each of Batsim's messages with the policy's decisions, and
    ends when the simulation ends. Ctrl-C ends it earlier; the recording then
    holds all messages up to that point.

    Examples:

      decision serve --policy easy

      decision serve --policy conservative --record session.jsonl --timeout 60

    and then, in another terminal:

      batsim -p platform.xml -w workload.json -e session
    """
    from decision.batsim.agent import make_agent
    from decision.batsim.zeromq import check_endpoint, serve
    from decision.files import load_platform
    from decision.rl.learning.checkpoint import require_gates

    from .tables import print_conversation, print_json
    from .terminal import announce_compilation, note

    check_endpoint(endpoint)  # before all that takes longer
    if not force:
        require_gates(policy)
    facts = load_platform(platform) if platform else None
    announce_compilation()
    agent = make_agent(policy, read_pairs(settings), platform=facts, seed=seed, decide_limit=decide_limit)
    conversation = serve(
        agent,
        endpoint,
        timeout=timeout,
        record=record,
        ready=lambda where: note(f"{policy} waits for Batsim at {where}"),
    )
    if as_json:
        print_json(conversation)
    else:
        print_conversation(conversation)


def replay_command(
    session: Session,
    policy: PolicyOption,
    settings: SettingsOption = None,
    platform: KnownPlatform = None,
    seed: SeedOption = 0,
    decide_limit: DecideLimitOption = DEFAULT_DECIDE_LIMIT,
    as_json: JsonOption = False,
) -> None:
    """Send a recorded session to a policy and compare its decisions.

    Stops at the first difference: the recording does not hold what Batsim would
    have answered to other decisions.

    Example:

      decision replay session.jsonl --policy easy
    """
    from decision.batsim.agent import make_agent
    from decision.batsim.conversation import replay
    from decision.files import load_platform

    from .tables import print_json, print_replay

    facts = load_platform(platform) if platform else None
    agent = make_agent(policy, read_pairs(settings), platform=facts, seed=seed, decide_limit=decide_limit)
    found = replay(session, agent)
    if as_json:
        print_json(found)
    else:
        print_replay(found)
