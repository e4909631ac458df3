"""Whatever comes through the socket, either end goes on or ends with one line that blames the peer.

`DECISION_FUZZ` sets how many messages each end hears; few by default.
"""

import gc
import os
import random
import re
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
import zmq
from helpers.cases import by_day
from helpers.engine_worlds import Capricious, World, worlds
from helpers.hostile_messages import frames, mutant, mutate_bytes
from hypothesis import given, settings

from decision.batsim.agent import make_agent
from decision.batsim.conversation import Recorder, answer_all
from decision.batsim.transport import ZmtpTransport
from decision.batsim.zeromq import ZmqTransport, ask_all
from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.reference.engine import ReferenceEngine
from decision.model.errors import ConfigError, DecisionError, PeerError, RemoteProtocolError
from decision.protocol import JsonCodec

COUNT = int(os.environ.get("DECISION_FUZZ", by_day(100, of=300)))
SEED = int(os.environ.get("DECISION_FUZZ_SEED", "1"))
WORLDS = 24
LONGEST = 25  # messages of a conversation
GROWTH = 100_000  # kB: more than this is a leak, or a message that took the memory it named
LAST = b"that is all"
POLICIES = ["fcfs", "first-fit", "easy", "conservative", "sjf+easy", "fcfs,power=idle-timeout,idle_timeout=1"]
USERS_OWN = re.compile(r"has no 'walltime'|pstates|wattage|watts")  # of the workload and platform that Batsim forwards


def some_worlds(**options) -> list[World]:
    """The same few worlds each time."""
    found: list[World] = []

    @settings(max_examples=WORLDS, deadline=None, derandomize=True, database=None)
    @given(worlds(**options))
    def collect(world):
        found.append(world)

    collect()
    return found


def parts(world: World):
    return world.platform, world.workloads, world.events, world.options


def memory() -> int:
    """Resident memory of this process, kB."""
    return int(re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())[1])


class Watched:
    """Fails when memory grows, garbage aside: thousands of conversations in one process are this test's own affair."""

    def __init__(self) -> None:
        self._before = 0

    def look(self, done: int) -> None:
        if done % 500 == 0:
            gc.collect()
        if done == COUNT // 10 * 2:
            self._before = memory()
        if done % 1000 == 0 and self._before:
            assert memory() - self._before < GROWTH, f"memory grew by {memory() - self._before} kB"


def judge(error: BaseException, case: str, allowed: re.Pattern[str] | None = None) -> None:
    """The peer is to blame, in one line; or the user, for what is allowed to be."""
    users = isinstance(error, ConfigError) and allowed is not None and allowed.search(str(error))
    assert users or isinstance(error, RemoteProtocolError | PeerError), f"{case}: {type(error).__name__}: {error}"
    assert "\n" not in str(error) and len(str(error)) < 10_000, f"{case}: {error}"


# --- The decision process hears ------------------------------------------------------------------------------


def conversation_with(policy: str, world: World) -> list[bytes]:
    """What Batsim asks our agent in this world."""
    engine, agent, questions = ReferenceEngine(*parts(world)), make_agent(policy, {}), []
    codec = JsonCodec()
    try:
        while len(questions) < LONGEST and (question := engine.ask()) is not None:
            data = codec.encode(question)
            reply = agent.handle(data)
            questions.append(data)
            engine.answer(codec.decode(reply))
    except DecisionError:
        pass  # the policy needs walltimes, or jobs wait for ever
    return questions


@pytest.fixture(scope="module")
def asked() -> list[tuple[str, list[bytes]]]:
    both = [*some_worlds(energy=True), *some_worlds(energy=False)]
    found = [(policy, conversation_with(policy, world)) for policy in POLICIES for world in both]
    return [(policy, questions) for policy, questions in found if len(questions) > 2]


def test_the_decision_process_blames_batsim(asked, tmp_path):
    rng, watched, others = random.Random(SEED), Watched(), [data for _, questions in asked for data in questions]
    context = zmq.Context()
    for number in range(COUNT):
        policy, questions = rng.choice(asked)
        turn = rng.randrange(len(questions)) if rng.random() < 0.9 else 0
        bad = mutant(questions[turn], rng, others)
        batsim = context.socket(zmq.DEALER)
        batsim.linger = 0
        with ZmqTransport(zmq.ROUTER, f"ipc://{tmp_path}/ask", peer="Batsim", timeout=10, advice="") as wire:
            batsim.connect(wire.endpoint)
            for data in questions[:turn]:
                batsim.send_multipart([b"", data])
            if rng.random() < 0.1:
                batsim.send_multipart(frames(bad, rng) or [b""])
            for data in (bad, *questions[turn + 1 :], LAST):
                batsim.send_multipart([b"", data])
            try:
                answer_all(make_agent(policy, {}), wire, Recorder(None))
            except BaseException as error:
                judge(error, f"case {number}, {policy}, after {turn} messages, {bad!r:.3000}", USERS_OWN)
        batsim.close()
        watched.look(number)
    context.term()


def on_the_wire(data: bytes) -> bytes:
    """A message as ZeroMQ sends it."""
    size = len(data)
    return b"\x01\0" + (bytes((0, size)) if size < 256 else b"\2" + size.to_bytes(8, "big")) + data


def test_the_line_to_a_batsim_that_we_start_blames_it(asked, tmp_path):
    rng, watched, others = random.Random(SEED), Watched(), [data for _, questions in asked for data in questions]
    hello = b"\xff" + bytes(8) + b"\x7f\3\1NULL" + bytes(48) + b"\4\x19\5READY\x0bSocket-Type\0\0\0\3REQ"
    for number in range(COUNT):
        policy, questions = rng.choice(asked)
        turn = rng.randrange(len(questions))
        bad = mutant(questions[turn], rng, others)
        said = [hello, *map(on_the_wire, (*questions[:turn], bad, *questions[turn + 1 :]))]
        if rng.random() < 0.5:
            at = rng.randrange(len(said))
            said[at] = mutate_bytes(said[at], rng, others)
        path = f"{tmp_path}/line{number}"
        with ZmtpTransport(path, timeout=10, advice="") as line, socket.socket(socket.AF_UNIX) as batsim:
            batsim.connect(path)
            sending = threading.Thread(target=send_and_go, args=(batsim, b"".join(said)))
            sending.start()
            try:
                answer_all(make_agent(policy, {}), line, Recorder(None))
            except BaseException as error:
                judge(error, f"case {number}, {policy}, after {turn} messages, {bad!r:.3000}", USERS_OWN)
            line.close(0)
            sending.join()
        Path(path).unlink()
        watched.look(number)


def send_and_go(batsim: socket.socket, data: bytes) -> None:
    """Say all at once, and hear no more."""
    with suppress(OSError):
        batsim.sendall(data)
        batsim.shutdown(socket.SHUT_WR)
        while batsim.recv(1 << 16):
            pass


# --- Batsim's end hears --------------------------------------------------------------------------------------


def replies_in(world: World) -> list[bytes]:
    """What a capricious decision process replies in this world."""
    engine, process, replies = ReferenceEngine(*parts(world)), Capricious(world), []
    try:
        while len(replies) < LONGEST and (question := engine.ask()) is not None:
            reply = process.reply(question)
            replies.append(JsonCodec().encode(reply))
            engine.answer(reply)
    except DecisionError:
        pass
    return replies


@pytest.fixture(scope="module")
def answered() -> list[tuple[World, list[bytes]]]:
    every = [*some_worlds(energy=True), *some_worlds(energy=False), *some_worlds(mischief=True)]
    found = [(world, replies_in(world)) for world in every]
    return [(world, replies) for world, replies in found if len(replies) > 1]


class Replying(threading.Thread):
    """A decision process that replies what it is told."""

    def __init__(self, context: zmq.Context, endpoint: str, replies: list[list[list[bytes]]]) -> None:
        super().__init__(daemon=True)
        self._socket = context.socket(zmq.ROUTER)
        self._socket.linger = 0
        self._socket.bind(endpoint)
        self._replies, self.over = replies, False

    def run(self) -> None:
        for reply in self._replies:
            while not self._socket.poll(2):
                if self.over:
                    return self._socket.close()
            sender = self._socket.recv_multipart()[0]
            for each in reply:
                self._socket.send_multipart([sender, *each])
        while not self.over:
            time.sleep(0.001)
        return self._socket.close()


@pytest.mark.parametrize("kind", [EmbeddedEngine, ReferenceEngine])
def test_batsims_end_blames_the_decision_process(answered, tmp_path, kind):
    rng, watched, others = random.Random(SEED), Watched(), [data for _, replies in answered for data in replies]
    context = zmq.Context()
    for number in range(COUNT):
        world, replies = rng.choice(answered)
        turn = rng.randrange(len(replies))
        bad = mutant(replies[turn], rng, others)
        said = [[[b"", data]] for data in (*replies[:turn], bad, *replies[turn + 1 :], LAST)]
        if rng.random() < 0.1:
            said[turn].insert(0, frames(bad, rng) or [b""])
        peer = Replying(context, f"ipc://{tmp_path}/answer", said)
        peer.start()
        try:
            ask_all(kind(*parts(world)), f"ipc://{tmp_path}/answer", timeout=10)
        except BaseException as error:
            judge(error, f"case {number}, after {turn} replies, {bad!r:.3000}")
        peer.over = True
        peer.join()
        watched.look(number)
    context.term()
