"""Changed checkpoints work or are refused in one line: no traceback, no crash, no write outside of an array.

`DECISION_FUZZ` sets how many are tried; few by default. With ``NUMBA_BOUNDSCHECK=1`` and a ``NUMBA_CACHE_DIR`` of its
own the kernels check their indices.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("torch")

from helpers.cases import by_day
from helpers.hostile_checkpoints import bases, packed

from decision.model.errors import ConfigError
from decision.rl.learning.deploy import learned_policy
from decision.rl.learning.weights import dump

CASES = int(os.environ.get("DECISION_FUZZ", by_day(60, of=200)))
AT_ONCE = 1000  # cases of one process
SCRIPT = Path(__file__).parents[3] / "helpers" / "hostile_checkpoints.py"


def tried(first: int, last: int, folder: Path) -> list[dict]:
    """What came of these cases; after a crash another process goes on."""
    results = []
    while first < last:
        command = [sys.executable, str(SCRIPT), str(first), str(last), str(folder)]
        done = subprocess.run(command, capture_output=True, text=True)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        results += [line for line in lines if "outcome" in line]
        assert lines, done.stderr
        if done.returncode:
            crashed = {"kind": "", "outcome": "crash", "message": f"{done.returncode}: {done.stderr[-2000:]}"}
            results.append({**lines[-1], **crashed})
        first = lines[-1]["case"] + 1
    return results


def test_a_changed_checkpoint_works_or_is_refused_in_one_line(tmp_path, capsys):
    results = [
        result for first in range(0, CASES, AT_ONCE) for result in tried(first, min(first + AT_ONCE, CASES), tmp_path)
    ]
    counts = Counter(result["outcome"] for result in results)
    if CASES > 200:
        with capsys.disabled():
            _report(results, counts)
    bad = [result for result in results if result["outcome"] in ("traceback", "crash", "bad message")]
    assert not bad, f"{counts}: {json.dumps(bad[:10], indent=1)}"
    assert len(results) == CASES
    assert counts["works"] > CASES / 50
    assert max(result["peak"] for result in results) < 4 << 30


def _report(results: list[dict], counts: Counter) -> None:
    print("", *(f"{outcome}: {count}" for outcome, count in counts.most_common()), sep="\n")
    by_kind = Counter((result["kind"], result["outcome"]) for result in results)
    print(*(f"  {kind}, {outcome}: {count}" for (kind, outcome), count in sorted(by_kind.items())), sep="\n")
    print(
        f"slowest {max(r.get('seconds', 0) for r in results):.2f} s",
        f"peak {max(r.get('peak', 0) for r in results) >> 20} MiB",
    )


def _refusal(folder: Path, manifest: dict, weights: dict) -> str:
    path = folder / "x.ckpt"
    path.write_bytes(packed(json.dumps(manifest).encode(), dump(weights)))
    with pytest.raises(ConfigError) as caught:
        learned_policy(path)
    assert str(caught.value).isprintable()
    return str(caught.value)


def test_an_encoder_that_would_write_beyond_its_observation_is_refused(tmp_path):
    manifest, weights = bases()[0]
    manifest["nb_hosts"] = manifest["encoder"]["cores"] = 256
    manifest["encoder"]["cluster"] = 128  # which the network's shapes do not depend on
    assert "encoder: cluster: must be 256 with the encoder dbf; found 128" in _refusal(tmp_path, manifest, weights)


def test_weights_that_are_not_finite_are_refused_naming_them(tmp_path):
    manifest, weights = bases()[0]
    weights["score.weight"][0, 1] = float("nan")
    assert "weights.pt: score.weight: a number is NaN or infinite" in _refusal(tmp_path, manifest, weights)


def test_torchs_advice_to_load_unsafely_is_not_passed_on(tmp_path):
    manifest, _ = bases()[0]
    message = _refusal(tmp_path, manifest, {"run": os.system})
    assert "cannot be read as torch's tensors" in message
    assert not any(word in message for word in ("weights_only", "safe_globals", "torch.load"))
