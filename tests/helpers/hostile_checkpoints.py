"""Checkpoints that were changed by accident or on purpose, numbered; run as a script, it tries a range of them.

Prints a JSON object per line: the case's number before it is tried, so that a crash can be blamed on it, and what came
of it after.
"""

import contextlib
import copy
import faulthandler
import io
import json
import random
import resource
import struct
import sys
import time
import traceback
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import torch

from decision import __version__
from decision.cli.report import print_manifest
from decision.files.text import InputFacts
from decision.model.errors import DecisionError
from decision.model.workload import Delay, Job, Workload
from decision.rl.envs import equal_hosts
from decision.rl.learning.checkpoint import Manifest, read_manifest
from decision.rl.learning.config import load_config
from decision.rl.learning.deploy import learned_policy
from decision.rl.learning.networks import make_network
from decision.rl.learning.weights import dump
from decision.rl.schedulers import Encoder, find_scheduler, make_encoder
from decision.rl.schedulers.base import Layout
from decision.rl.schedulers.ranking import first_guess
from decision.simulation import simulate_workloads

HOSTS, MOST_HOSTS = 8, 512
SLOW = 60.0  # seconds after which a case counts as one that hangs, and ends the process
MEMORY = 24 << 30  # bytes of addresses: torch alone takes some GiB of them
SPLIT = ("env.head=4", "env.tail=2", "env.cluster=cores")
BASES = (  # preset, encoder, changes
    ("dbf-compact", "dbf", (*SPLIT, "network.hidden=[4]")),
    ("dbf-compact", "dbf-pools", (*SPLIT, "network.hidden=[4]", "env.cluster=pools")),
    ("dbf-compact", "dbf", (*SPLIT, "network.kind=mlp", "network.hidden=[4, 3]")),
    ("rlscheduler", "rlscheduler", ("env.head=6", "network.hidden=[4, 3]")),
    ("inspector", "inspector", ("network.hidden=[4, 3]",)),
    ("ranking", "", ()),
)
JOBS = [
    Job(id=f"w0!{i}", submit_time=float(5 * i), size=size, walltime=20.0 + 7 * i, profile="d")
    for i, size in enumerate((4, 8, 1, 2, 6, 1, 3, 8, 1, 5))
]
WORKLOAD = Workload(name="w0", jobs=JOBS, profiles={"d": Delay(18.0)}, nb_res=HOSTS)

Parts = tuple[dict[str, Any], dict[str, torch.Tensor]]  # manifest, weights

ODD = (None, True, False, "", "x", "\n\x1b[31m", "é" * 2000, [], {}, [[]], {"a": {}}, 0, 1, 2, 7, -1, 1.5, -0.0, 1e-320)
ODD += (1e-300, 1e308, 8191, 8192, 8193, 2**20, 2**20 + 1, 2**31 - 1, 2**31, 2**32, 2**62, 2**63, 2**64, 10**30)
RAW = (b"\xff", b"\x00", b"[" * 100_000, b'{"a":' * 100_000, b"NaN", b"1e999", b"9" * 5000, b'"\\ud800"', b"", b"{}")


def bases() -> list[Parts]:
    """Checkpoints of all kinds as they should be."""
    return [_base(*base) for base in BASES]


def _base(preset: str, name: str, changes: tuple[str, ...]) -> Parts:
    config = load_config(preset, changes)
    sees, weights = dict(find_scheduler("ranking").sees), {"weights": torch.from_numpy(first_guess())}
    if name:
        window = {key: value for key, value in config.settings.items() if key in ("head", "tail", "base")}
        encoder = make_encoder(HOSTS, [WORKLOAD], name=name, **window)
        sees = msgspec.to_builtins(encoder)
        with torch.random.fork_rng():
            torch.manual_seed(0)
            weights = _network(config, encoder).state_dict()
    facts = InputFacts(name="w", sha256="0" * 64)
    told = {"decision": __version__, "algorithm": "ppo", "nb_hosts": HOSTS, "platform": facts, "workloads": (facts,)}
    manifest = Manifest(config=config, encoder=sees, steps=7, scores={"waiting_time": 12.5}, **told)
    return msgspec.json.decode(msgspec.json.encode(manifest)), dict(weights)


def _network(config: Any, encoder: Encoder) -> torch.nn.Module:
    return make_network(
        config.network, encoder.shape[0], encoder.actions, find_scheduler(config.scheduler).layout(encoder)
    )


def packed(manifest: bytes, weights: bytes, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A checkpoint's bytes."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as archive:
        archive.writestr(zipfile.ZipInfo("manifest.json"), manifest, method)
        archive.writestr(zipfile.ZipInfo("weights.pt"), weights, method)
    return data.getvalue()


def case(number: int, made: list[Parts]) -> tuple[str, bytes]:
    """The kind of a change and what it makes of a checkpoint."""
    rng = random.Random(number)
    manifest, weights = copy.deepcopy(rng.choice(made))
    kind = rng.choice(("fields", "fields", "sizes", "sizes", "text", "tensors", "tensors", "torch's bytes", "file"))
    text, data = json.dumps(manifest).encode(), b""
    if kind == "fields":
        for _ in range(rng.choice((1, 1, 1, 2, 5))):
            _change_field(rng, manifest)
        text = json.dumps(manifest).encode()
    elif kind == "sizes":
        _change_sizes(rng, manifest)
        text = json.dumps(manifest).encode()
        if rng.random() < 0.7:  # weights that fit the change, as far as there are some
            with contextlib.suppress(Exception):
                weights = _fitting(manifest, weights)
    elif kind == "text":
        text = _change_bytes(rng, text)
    elif kind == "tensors":
        data = dump(_change_tensors(rng, weights))
    data = data or dump(weights)
    if kind == "torch's bytes":
        data = _change_torch(rng, data)
    whole = packed(text, data, rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))
    return kind, _change_file(rng, whole, text, data) if kind == "file" else whole


def _places(tree: Any) -> list[tuple[Any, Any]]:
    """All (container, key) of a tree."""
    keys = tree.keys() if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    return [place for key in keys for place in ((tree, key), *_places(tree[key]))]


def _change_field(rng: random.Random, manifest: dict[str, Any]) -> None:
    tree, key = rng.choice(_places(manifest))
    change = rng.randrange(6)
    if change == 0:
        del tree[key]
    elif change == 1 and isinstance(tree, dict):
        tree[rng.choice(("", "x", "depth", "\n", "é" * 500))] = rng.choice(ODD)
    elif change == 2 and isinstance(tree[key], (int, float)):
        tree[key] = rng.choice(
            (-tree[key], tree[key] + 1, tree[key] - 1, tree[key] * 2, tree[key] // 2, tree[key] * 1e9)
        )
    elif change == 3:
        other, place = rng.choice(_places(manifest))
        tree[key] = copy.deepcopy(other[place])
    else:
        tree[key] = rng.choice(ODD)


def _change_sizes(rng: random.Random, manifest: dict[str, Any]) -> None:
    """Sizes alone, often such that some of them still fit together."""
    encoder, config = manifest["encoder"], manifest["config"]
    size = rng.choice((0, 1, 2, 3, 7, 9, 16, 128, 256, 1023, 1025, 8192, 2**20, 2**31, 10**9))
    together = (
        (encoder, "cores"),
        (encoder, "cluster"),
        (manifest, "nb_hosts"),
        (encoder, "head"),
        (config["env"], "head"),
        (encoder, "tail"),
        (config["env"], "tail"),
        (config["network"] or {}, "hidden"),
    )
    chosen = rng.choice(((0, 1, 2), (0, 2), (1,), (0,), (3, 4), (5, 6), (3,), (7,), (1, 4, 6), tuple(range(8))))
    for at in chosen:
        tree, key = together[at]
        if key not in tree:
            continue
        tree[key] = [size] * rng.choice((1, 2, 17)) if key == "hidden" else size
    if rng.random() < 0.3:
        encoder[rng.choice(("max_runtime", "max_wait"))] = rng.choice((1e-320, 1e-9, 1e-6, 1e15, 1e300, 0, -1))
    if rng.random() < 0.1:
        encoder["name"] = rng.choice(("dbf", "dbf-pools", "rlscheduler", "inspector"))


def _fitting(manifest: dict[str, Any], weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Weights of the network that the manifest describes, checks aside; those given where that is too large."""
    fields = manifest["encoder"]
    window = fields.get("head", 0) + fields.get("tail", 0)
    cluster = fields.get("cluster", 7 if fields["name"] == "inspector" else 0)
    width = cluster + 4 * window
    if max(width, *manifest["config"]["network"]["hidden"]) > 2048:
        return weights
    actions = {"rlscheduler": window, "inspector": 2}.get(fields["name"], window + 1)
    network = msgspec.convert(manifest["config"]["network"], type(load_config("dbf-compact").network))
    layout = Layout(cluster, window, fields.get("cores", 0) > 0, fields.get("version") == 2)
    return dict(make_network(network, width, actions, layout).state_dict())


def _change_bytes(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at, change = rng.randrange(max(len(changed), 1)), rng.randrange(6)
        if change <= 2 and changed:
            changed[at] ^= 1 << rng.randrange(8)
        elif change == 3:
            del changed[at : at + rng.choice((1, 4, 100, 10**6))]
        elif change == 4:
            changed[at:at] = rng.choice(RAW)
        elif changed:
            changed[at] = rng.randrange(256)
    return bytes(changed)


Change = Callable[[torch.Tensor], Any]
TENSOR_CHANGES: tuple[Change, ...] = (
    lambda t: t.T.contiguous() if t.dim() == 2 else t[None],
    lambda t: t.T if t.dim() == 2 else t.flip(0)[::2],
    lambda t: t.reshape(-1),
    lambda t: t[:-1],
    lambda t: torch.cat([t, t]),
    lambda t: torch.zeros(0),
    lambda t: torch.tensor(1.0),
    lambda t: t.double(),
    lambda t: t.half(),
    lambda t: t.long(),
    lambda t: t > 0,
    lambda t: t.to(torch.complex64),
    lambda t: t.to_sparse(),
    lambda t: t.to("meta"),
    lambda t: torch.nn.Parameter(t),
    lambda t: torch.zeros(1).expand(t.shape),
    lambda t: torch.zeros(1).expand(10**6, 10**6),
    lambda t: torch.as_strided(t.reshape(-1), t.shape, (0,) * t.dim()),
    lambda t: t * float("nan"),
    lambda t: t / 0.0,
    lambda t: t * 1e30,
    lambda t: t * 1e-30,
    lambda t: -t,
    lambda t: t + 0.1,
    lambda t: torch.quantize_per_tensor(t.float(), 0.1, 0, torch.quint8),
    lambda t: None,
    lambda t: 1.0,
    lambda t: "x",
    lambda t: [t],
    lambda t: {"t": t},
)


def _change_tensors(rng: random.Random, weights: dict[str, Any]) -> Any:
    for _ in range(rng.choice((1, 1, 3))):
        name = rng.choice(list(weights))
        change = rng.randrange(8)
        if change == 0 and len(weights) > 1:
            del weights[name]
        elif change == 1:
            weights[rng.choice(("x", 1, "\n", "weights"))] = weights[name]
        elif change == 2:
            return rng.choice(([], [weights], None, 1, "x", torch.zeros(3), {}))
        elif isinstance(weights[name], torch.Tensor):
            try:
                weights[name] = rng.choice(TENSOR_CHANGES)(weights[name])
            except (RuntimeError, IndexError, TypeError):  # one that the change cannot be made to
                weights[name] = 0
    return weights


def _change_torch(rng: random.Random, data: bytes) -> bytes:
    """Of torch's own zip: its bytes, or those of its pickle with the zip whole."""
    change = rng.randrange(5)
    if change <= 1:
        return _change_bytes(rng, data)
    if change == 2:  # the format of old versions of torch, and their archives
        return rng.choice(
            (b"", b"not torch's", b"\x80\x02}q\x00.", b"\x80\x02cos\nsystem\n(S'true'\ntR.", b"ustar" * 200)
        )
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = next(name for name in members if name.endswith("data.pkl")) if change < 4 else rng.choice(list(members))
    members[name] = _change_bytes(rng, members[name])
    changed = io.BytesIO()
    method = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(changed, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return changed.getvalue()


def _change_file(rng: random.Random, whole: bytes, text: bytes, data: bytes) -> bytes:
    change = rng.randrange(8)
    if change <= 2:
        return _change_bytes(rng, whole)
    if change == 3:  # sizes, flags and methods of the directory that lie
        changed = bytearray(whole)
        entry = whole.index(b"PK\x01\x02", whole.index(b"PK\x01\x02") + 4 * rng.randrange(2))
        at, form = rng.choice(((20, "<I"), (24, "<I"), (8, "<H"), (10, "<H"), (42, "<I"), (28, "<H")))
        struct.pack_into(form, changed, entry + at, rng.choice((0, 1, 8, 9, 12, 14, 255, 65535)))
        return bytes(changed)
    if change == 4:  # a bomb
        zeros = bytes(rng.choice((2 << 20, 20 << 20)))
        return packed(zeros, data) if rng.random() < 0.5 else packed(text, zeros)
    archived = io.BytesIO()
    method = rng.choice((zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, zipfile.ZIP_DEFLATED))
    names = rng.choice(
        (("manifest.json",), ("weights.pt",), (), ("manifest.json", "weights.pt", "x"), ("../manifest.json",))
    )
    with zipfile.ZipFile(archived, "w", method) as archive:
        for name in names:
            archive.writestr(name, data if name == "weights.pt" else text)
    return archived.getvalue()


def attempt(path: Path) -> tuple[str, str]:
    """What comes of a checkpoint, shown and as a policy: an outcome, and its message."""
    outcome, message = "works", ""
    for step in (_show, _run):
        try:
            step(path)
        except DecisionError as error:
            outcome, message = f"refused by {step.__name__[1:]}", str(error)
            if not message.isprintable() or len(message) > 1000 or "weights_only" in message or "globals" in message:
                return "bad message", message
        except BaseException:
            return "traceback", traceback.format_exc()
    return outcome, message


def _show(path: Path) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        print_manifest(read_manifest(path))


def _run(path: Path) -> None:
    policy = learned_policy(path)
    cores = getattr(getattr(policy, "encoder", None), "cores", 0)  # only encoders of single cores have a number
    simulate_workloads(equal_hosts(cores if 8 <= cores <= MOST_HOSTS else HOSTS), [WORKLOAD], policy)


def main(first: int, last: int, folder: Path) -> None:
    """Try the cases from `first` to before `last`."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    made, path = bases(), folder / "x.ckpt"
    for manifest, weights in made:
        path.write_bytes(packed(json.dumps(manifest).encode(), dump(weights)))
        outcome = attempt(path)
        assert outcome == ("works", ""), outcome
    for number in range(first, last):
        print(json.dumps({"case": number}), flush=True)
        faulthandler.dump_traceback_later(SLOW, exit=True)
        kind, data = case(number, made)
        path.write_bytes(data)
        began = time.perf_counter()
        outcome, message = attempt(path)
        told = {"kind": kind, "outcome": outcome, "message": message, "seconds": time.perf_counter() - began}
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        print(json.dumps({"case": number, **told, "peak": peak}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
