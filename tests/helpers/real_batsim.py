"""A real Batsim beside our engines: input files for it, one decision process for all, and what differs."""

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

import decision.protocol.messages as p
from decision.batsim.agent import make_agent
from decision.batsim.conversation import Responder
from decision.batsim.launcher import run_batsim
from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.reference.engine import ReferenceEngine
from decision.engine.rules import EngineOptions
from decision.files import load_events, load_platform, load_workload, write_platform, write_workload
from decision.model.errors import DecisionError, PeerError
from decision.model.hosts import format_hosts
from decision.model.platform import Host, Platform
from decision.model.workload import (
    MachineEvent,
    Parallel,
    ParallelHomogeneous,
    ParallelHomogeneousTotal,
    Profile,
    Workload,
    used_profiles,
)
from decision.protocol import JsonCodec
from decision.simulation import simulate_workloads
from helpers.engine_harness import PRECISION, compare_outputs, question_differences
from helpers.engine_worlds import Capricious, World

_ENGINES = {"reference": ReferenceEngine, "embedded": EmbeddedEngine}
_TIMEOUT = 60.0  # seconds for one of Batsim's messages
BACK_TOO_EARLY = "this machine was not in UNAVAILABLE state"  # to Batsim a switch that ends brings a host back
_BRIEF = 1e-3  # of a mean power over nanoseconds
_DIGITS = 9  # decimals of times
_GIGA = 1e9  # speeds and amounts of a world are a few flop; SimGrid shares speed out to 1e-5 flop/s
_WIDEST = 1e15  # bytes/s, of a link in place of none


def find_batsim() -> str:
    """The path of a Batsim 4.2; empty where ``batsim`` on the path is none."""
    found = shutil.which("batsim") or ""
    version = subprocess.run([found, "--version"], capture_output=True, text=True).stdout if found else ""
    return found if version.strip().lstrip("v").startswith("4.2") else ""


def converse_with_batsim(world: World, batsim: str, folder: Path, engines: Mapping[str, Any] = _ENGINES) -> list[str]:
    """Give Batsim and our engines the replies of one decision process; returns what differs at the first point.

    Where a reply is impossible the run ends with it: Batsim dies, and our engines have to refuse it.

    Args:
        world: what is simulated; it is written as files, and read from them.
        batsim: Batsim's executable.
        folder: empty, for the files.
        engines: classes of ours, by name.
    """
    world = written(world, folder)
    process = _Companion(world, engines)
    try:
        _run(process, world, batsim, folder)
    except _StoppedError:
        return process.differences
    except PeerError as error:
        return process.batsim_died(str(error))
    return [
        f"{name}: {difference}"
        for name, engine in process.engines.items()
        for difference in _compare_ends(engine, folder, folder / name)
    ]


def run_policy_beside_batsim(world: World, policy: str, seed: int, batsim: str, folder: Path) -> list[str]:
    """Run a policy on Batsim and on the embedded engine; returns what differs in their files.

    Where Batsim dies of a host that came back while it was away, nothing is left to compare; our engine has to go on.
    Arguments are those of `converse_with_batsim`, and the policy's name and seed.
    """
    world, death = written(world, folder), ""
    try:
        _run(make_agent(policy, {}, platform=world.platform, seed=seed), world, batsim, folder)
    except PeerError as error:
        death = str(error)
    scratch = folder / "embedded"
    scratch.mkdir()
    try:
        record = simulate_workloads(
            world.platform, world.workloads, policy, events=world.events, engine_options=world.options, seed=seed
        )
    except DecisionError as error:
        return [] if death else [f"the engine says {error}"]
    if BACK_TOO_EARLY in death:
        return []
    return [f"{death}; the engine runs to the end"] if death else compare_outputs(record, folder, scratch, brief=_BRIEF)


def _run(process: Responder, world: World, batsim: str, folder: Path) -> None:
    words = [batsim, *_input_options(world, folder), *_option_words(world.options), "-e", f"{folder}/out"]
    run_batsim(process, [*words, "-v", "quiet"], log=folder / "batsim.log", timeout=_TIMEOUT)


def _compare_ends(engine: Any, folder: Path, scratch: Path) -> list[str]:
    after = _ask(engine)
    if after is not None:
        return [f"Batsim has ended, and the engine says {after!r}"]
    scratch.mkdir()
    return compare_outputs(engine.record(), folder, scratch, brief=_BRIEF)


class _StoppedError(Exception):
    """There is nothing to go on with: an engine differs, or refuses a reply."""


class _Companion:
    """A decision process full of whims, which asks our engines for each question that it gets."""

    def __init__(self, world: World, engines: Mapping[str, Any] = _ENGINES) -> None:
        self.whims = Capricious(world)
        made = (world.platform, world.workloads, world.events, world.options)
        self.engines = {name: engine(*made) for name, engine in engines.items()}
        self.differences: list[str] = []
        self.finished, self.now, self.state = False, 0.0, None
        self._questions = 0

    def get_ready(self) -> None:
        """Nothing to load."""

    def handle(self, question: bytes) -> bytes:
        """Compare the question with our engines' own, and answer all of them."""
        wanted, codec = json.loads(question), JsonCodec()
        for name, engine in self.engines.items():
            self._compare(name, wanted, _ask(engine))
        if self.differences:
            raise _StoppedError
        heard = codec.decode(question)
        self._questions += 1
        self.now = heard.now
        self.finished = any(isinstance(event, p.SimulationEnds) for event in heard.events)
        data = codec.encode(_possible(self.whims.reply(heard)))
        for engine in self.engines.values():
            engine.answer(codec.decode(data))
        return data

    def _compare(self, name: str, wanted: dict[str, Any], found: p.Message | DecisionError | None) -> None:
        if isinstance(found, p.Message):
            said = json.loads(JsonCodec().encode(found))
            different = question_differences(wanted, said, PRECISION)
        else:
            different = [f"Batsim tells at {wanted['now']} of {wanted['events']}, the engine says {found!r}"]
        self.differences += [f"{name}, question {self._questions}: {line}" for line in different[:1]]

    def batsim_died(self, reason: str) -> list[str]:
        """What differs where Batsim died of a reply, or did before all."""
        answers = {name: _ask(engine) for name, engine in self.engines.items()}
        return [
            f"{name}, question {self._questions}: {reason}; the engine says {answer!r}"
            for name, answer in answers.items()
            if not isinstance(answer, DecisionError)
        ]


def _ask(engine: Any) -> p.Message | DecisionError | None:
    try:
        return engine.ask()
    except DecisionError as error:
        return error


def _possible(reply: p.Message) -> p.Message:
    """The reply in giga flop, without what Batsim 4.2.1 dies of, and without numbers of more than 15 digits."""
    return p.Message(round(reply.now, _DIGITS), tuple(map(_possible_event, reply.events)))


def _possible_event(event: Any) -> Any:
    event = msgspec.structs.replace(event, timestamp=round(event.timestamp, _DIGITS))
    match event:
        case p.CallMeLater():
            return p.CallMeLater(event.timestamp, p.CallMeLaterData(round(event.data.timestamp, _DIGITS)))
        case p.ChangeJobState(data=p.ChangeJobStateData(job_state="REJECTED")):
            return p.RejectJob(event.timestamp, p.RejectJobData(event.data.job_id))
        case p.RegisterProfile(data=data) if "cpu" in data.profile:
            profile = data.profile | {"cpu": data.profile["cpu"] * _GIGA}
            return p.RegisterProfile(event.timestamp, msgspec.structs.replace(data, profile=profile))
    return event


# --- Files -------------------------------------------------------------------------------------------------------


def written(world: World, folder: Path) -> World:
    """Write a world as Batsim's input files; returns the world that they say."""
    write_platform(folder / "platform.xml", _presentable(world.platform, world.options.energy))
    _give_cores(folder / "platform.xml", world.platform)
    if world.platform.routes:
        _connect(folder / "platform.xml", world.platform)
    for workload in world.workloads:
        write_workload(folder / f"{workload.name}.json", _giga(workload))
    (folder / "events.txt").write_text("".join(f"{_event_line(event)}\n" for event in world.events))
    read = [load_workload(folder / f"{work.name}.json", work.name, keep_source=True) for work in world.workloads]
    told = bool(world.events)  # Batsim says whether it forwards unknown events only where it has files of events
    options = msgspec.structs.replace(world.options, forward_unknown_events=told, trace=True)
    return World(
        platform=load_platform(folder / "platform.xml", energy=world.options.energy),
        workloads=tuple(read),
        events=tuple(load_events(folder / "events.txt", forward_unknown=True)),
        options=options,
        whims=world.whims,
        manners=msgspec.structs.replace(world.manners, elsewhere=0),  # Batsim 4.2.1 dies of it
    )


def _presentable(platform: Platform, energy: bool) -> Platform:
    """The platform as a file can say it: storage hosts by their role, and with energy no host that begins asleep."""
    storage = (msgspec.structs.replace(host, properties={"role": "storage"}) for host in platform.storage)
    hosts = tuple(_presentable_host(host, energy) for host in platform.hosts)
    return msgspec.structs.replace(platform, hosts=hosts, storage=tuple(storage))


def _presentable_host(host: Host, energy: bool) -> Host:
    known = host.is_computing_pstate(host.initial_pstate) or not energy
    pstates = (
        msgspec.structs.replace(
            pstate,
            speed=pstate.speed if number in host.virtual_pstates else pstate.speed * _GIGA,
            full=pstate.epsilon + host.cores * (pstate.full - pstate.epsilon),
        )
        for number, pstate in enumerate(host.pstates)
    )
    return msgspec.structs.replace(host, pstates=tuple(pstates), initial_pstate=host.initial_pstate if known else 0)


def _give_cores(path: Path, platform: Platform) -> None:
    """Let hosts of a written platform have their cores, and all of them draw what one has drawn."""
    text = path.read_text()
    for host in platform.hosts:
        if host.cores > 1:
            text = text.replace(f'<host id="{host.name}"', f'<host id="{host.name}" core="{host.cores}"')
    path.write_text(text)


def _giga(workload: Workload) -> Workload:
    used = used_profiles(workload.profiles, [job.profile for job in workload.jobs])  # others may stay or go in Batsim
    profiles = {name: _giga_profile(profile) for name, profile in workload.profiles.items() if name in used}
    return msgspec.structs.replace(workload, profiles=profiles)


def _giga_profile(profile: Profile) -> Profile:
    match profile:
        case ParallelHomogeneous(flops=amount) | ParallelHomogeneousTotal(flops=amount):
            return msgspec.structs.replace(profile, flops=amount * _GIGA)
        case Parallel(flops=amounts):
            return msgspec.structs.replace(profile, flops=tuple(amount * _GIGA for amount in amounts))
    return profile


def _connect(path: Path, platform: Platform) -> None:
    """Give each host of a written platform a link of its own to the master, as its route says."""
    lines = []
    for number, (host, route) in enumerate(zip(platform.hosts, platform.routes, strict=False)):
        name, bandwidth = f"{host.name}_link", min(route.bandwidth, _WIDEST)
        lines.insert(number, f'<link id="{name}" bandwidth="{bandwidth!r}Bps" latency="{route.latency!r}s"/>')
        lines.append(f'<route src="{host.name}" dst="{platform.master}"><link_ctn id="{name}"/></route>')
    text = path.read_text().replace('routing="Vivaldi"', 'routing="Full"').replace(' coordinates="0 0 0"', "")
    path.write_text(text.replace("</zone>", "\n".join([*lines, "</zone>"])))


def _event_line(event: MachineEvent) -> str:
    if event.source:
        return bytes(event.source).decode()
    return json.dumps({"type": event.type, "timestamp": event.timestamp, "resources": format_hosts(event.hosts)})


def _input_options(world: World, folder: Path) -> list[str]:
    words = ["-p", f"{folder}/platform.xml"]
    for workload in world.workloads:
        words += ["-w", f"{folder}/{workload.name}.json"]
    return words + (["--events", f"{folder}/events.txt"] if world.events else [])


def _option_words(options: EngineOptions) -> list[str]:
    chosen = {
        "-E": options.energy,
        "--enable-dynamic-jobs": options.dynamic_jobs,
        "--acknowledge-dynamic-jobs": options.acknowledge_dynamic_jobs,
        "--enable-profile-reuse": options.profile_reuse,
        "--enable-compute-sharing": options.compute_sharing,
        "--forward-profiles-on-submission": options.forward_profiles,
        "--forward-unknown-events": options.forward_unknown_events,
        "--disable-machine-state-tracing": not options.trace,
        "--disable-schedule-tracing": True,
    }
    return [word for word, is_chosen in chosen.items() if is_chosen]
