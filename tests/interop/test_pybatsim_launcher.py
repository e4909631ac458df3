"""Our policies under pybatsim 3.2.1: through its Batsim class for all of them, and by its own command over a socket."""

import json
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers.golden import ROOT, SESSIONS
from helpers.green_worlds import BY_MESSAGES, FAILING, POLICIES, failing, platform, supply, workload

from decision.batsim.agent import make_agent
from decision.batsim.conversation import Responder
from decision.batsim.pybatsim import PybatsimAgent
from decision.cli.app import app
from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.rules import EngineOptions
from decision.experiments.run import simulate_by_messages
from decision.files import load_platform, load_workload
from decision.files.outputs_write import write_run
from decision.model.errors import PolicyError
from decision.policies.registry import list_policies
from decision.protocol import JsonCodec

pytest.importorskip("batsim.batsim", reason="pybatsim 3.2.1 is not installed")
OURS = "pybatsim:decision.pybatsim:Policy"
PATIENCE = 300  # seconds for a process to end; a first run compiles


def names() -> list[str]:
    """All of ``decision policies``, with an example for each line that is no whole name."""
    found = [
        line.name for line in list_policies() if line.name.islower() and not line.name.startswith(("slurm", "pyb"))
    ]
    parts = [f"fcfs+first-fit{name.removeprefix('...')}" for name in found if name.startswith("...")]
    whole = [name for name in found if not name.startswith("...") and not name.endswith(".ckpt")]
    parts = [f"{part},power=idle-timeout" if "bound" in part else part for part in parts]
    return [*whole, *parts, "sjf+easy", "wfp3+conservative", "saf+easy,guard=1.5x"]


PLATFORMS = {  # where a policy needs one, and Batsim does not send all of it
    "fat_tree1000": ("window", "repair", "tree"),
    "torus64": ("hops",),
    "orion_cores": ("joint", "start=", "power="),
    "cluster256": ("dbf-0-10",),
}


def platform_of(policy: str) -> Path | None:
    """The file of the platform that a policy needs."""
    found = [name for name, needing in PLATFORMS.items() if any(part in policy for part in needing)]
    return ROOT / "platforms" / f"{found[0]}.xml" if found else None


def jobs_csv(policy: str, agent: Responder, prefix: Path) -> bytes:
    """What Batsim writes of 30 jobs that say all that a policy may ask for, some under a supply of power."""
    file, energy = platform_of(policy), "power=" in policy or "start=" in policy or policy == "joint"
    hosts = load_platform(file, energy=energy) if file else platform()
    supplied = "suspend=" in policy or policy in ("timetable", "fcfs")
    events, options = (supply(3), BY_MESSAGES) if supplied else ((), EngineOptions(energy=energy))
    write_run(prefix, simulate_by_messages(EmbeddedEngine(hosts, [workload(3)], events, options), agent))
    return Path(f"{prefix}_jobs.csv").read_bytes()


@pytest.mark.parametrize("policy", names())
def test_every_policy_gives_the_same_jobs_under_pybatsim_as_served(policy: str, tmp_path: Path) -> None:
    file = platform_of(policy)
    facts = load_platform(file) if file else None
    options = {"policy": policy, "seed": 5, "force": True} | ({"platform": str(file)} if file else {})
    served = jobs_csv(policy, make_agent(policy, {}, platform=facts, seed=5), tmp_path / "served")
    launched = jobs_csv(policy, PybatsimAgent(OURS, options), tmp_path / "launched")
    assert served.count(b"\n") > 30
    assert launched == served


@pytest.mark.parametrize("policy", [*POLICIES, *FAILING])
def test_suspended_jobs_and_failing_hosts_are_the_same_under_pybatsim(policy: str, tmp_path: Path) -> None:
    written = []
    for agent in (make_agent(policy, {}), PybatsimAgent(OURS, {"policy": policy})):
        events = failing(1) if policy in FAILING else supply(1)
        engine = EmbeddedEngine(platform(), [workload(1)], events, BY_MESSAGES)
        write_run(tmp_path / "out", simulate_by_messages(engine, agent))
        written.append((tmp_path / "out_jobs.csv").read_bytes())
    assert written[0] == written[1]


def test_slurms_scheduler_gives_the_same_jobs_under_pybatsim(tmp_path: Path) -> None:
    files, case = ROOT / "examples" / "slurm", tmp_path / "case"
    read = ["slurm", "read", "--conf", files / "slurm.conf", "--jobs", files / "sacct.txt", "-o", case]
    assert CliRunner().invoke(app, [*map(str, read)]).exit_code == 0
    policy, hosts = f"slurm,conf={case / 'slurm.conf'}", load_platform(case / "platform.xml")
    theirs = PybatsimAgent(OURS, {"policy": policy, "platform": str(case / "platform.xml")})
    written = []
    for agent in (make_agent(policy, {}, platform=hosts), theirs):
        engine = EmbeddedEngine(hosts, [load_workload(case / "workload.json")], [], EngineOptions())
        write_run(tmp_path / "out", simulate_by_messages(engine, agent))
        written.append((tmp_path / "out_jobs.csv").read_bytes())
    assert written[0] == written[1]


# --- By pybatsim's own command, over a socket ----------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def beside_the_stand_in(scheduler: list[str], port: int, tmp_path: Path) -> bytes:
    """The jobs.csv of ``decision batsim``, which this process decides for."""
    batsim = [sys.executable, "-m", "decision", "batsim", "-p", "platform.xml", "-w", "workload0.json"]
    batsim += ["-s", f"tcp://localhost:{port}", "-e", str(tmp_path / "out"), "-q"]
    with (tmp_path / "scheduler.log").open("w") as log:
        process = subprocess.Popen(scheduler, stdout=log, stderr=subprocess.STDOUT, cwd=tmp_path)
        try:
            folder = SESSIONS / "kill"
            simulated = subprocess.run(batsim, cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
            assert process.wait(PATIENCE) == 0, (tmp_path / "scheduler.log").read_text()[-2000:]
            assert simulated.returncode == 0, simulated.stderr
        finally:
            process.kill()
            process.wait()
    return (tmp_path / "out_jobs.csv").read_bytes()


def launcher(scheduler: str, *options: str) -> list[str]:
    return [sys.executable, "-m", "batsim.cmds.launcher", scheduler, "-v", "warning", *options]


@pytest.mark.parametrize(("policy", "forms"), [("saf+easy,guard=1.5x", 3), ("learned", 1)])
def test_pybatsims_command_starts_our_policies_in_each_of_its_forms(policy: str, forms: int, tmp_path: Path) -> None:
    port, options = free_port(), json.dumps({"policy": policy})
    serve = [sys.executable, "-m", "decision", "serve", "--policy", policy, "-s", f"tcp://127.0.0.1:{port}"]
    served = beside_the_stand_in(serve, port, tmp_path)
    (tmp_path / "options.json").write_text(options)
    for form in [
        ["decision.pybatsim:Policy", "-o", options],
        ["decision/pybatsim.py", "-O", "options.json"],
        [str(ROOT / "decision" / "pybatsim.py"), "-o", options],
    ][:forms]:
        said = ["-s", f"tcp://127.0.0.1:{port}", "-t", str(PATIENCE * 1000)]
        assert beside_the_stand_in(launcher(*form, *said), port, tmp_path) == served


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "option 'policy' of -o: name a policy, as in"),
        ({"polcy": "easy"}, "option 'polcy' of -o: there is none; did you mean policy?"),
        ({"policy": "esay"}, "there is no policy 'esay'; did you mean easy?"),
        ({"policy": "easy", "seed": -1}, "seed: must be a whole number, at least 0; found -1"),
        (
            {"policy": "pybatsim:schedulers.easyBackfill:EasyBackfill"},
            "is pybatsim's own: start it with pybatsim itself",
        ),
        ({"policy": "easy", "platform": "absent.xml"}, "absent.xml"),
    ],
)
def test_a_mistake_in_the_options_ends_pybatsims_command_with_one_line(options: dict, told: str) -> None:
    from decision.pybatsim import Policy

    with pytest.raises(SystemExit, match=re.escape(told)) as caught:
        Policy(options)
    assert str(caught.value).startswith("error: ")
    assert "\n" not in str(caught.value)


def test_what_the_policy_cannot_do_ends_with_one_line(tmp_path: Path) -> None:
    agent = PybatsimAgent(OURS, {"policy": "density+first-fit,suspend=density"})
    with pytest.raises(PolicyError, match=r"error: policy density\+first-fit suspends jobs.*--enable-dynamic-jobs"):
        simulate_by_messages(EmbeddedEngine(platform(), [workload(3)], [], EngineOptions()), agent)


def test_pybatsims_own_checks_are_refused() -> None:
    from batsim.batsim import Batsim
    from batsim.validatingmachine import ValidatingMachine

    from decision.pybatsim import Policy

    question = EmbeddedEngine(platform(), [workload(3)], [], EngineOptions()).ask()

    class Network:
        def __init__(self, *_: object, **__: object) -> None: ...

        def bind(self) -> None: ...

        def recv(self, blocking: bool = False) -> dict:
            return json.loads(JsonCodec().encode(question))

    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit, match=r"--protect .* leave it out"):
        patch.setattr("batsim.batsim.NetworkHandler", Network)
        Batsim(Policy({"policy": "easy"}), "", None, validatingmachine=ValidatingMachine)
