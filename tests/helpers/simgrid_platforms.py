"""Platforms in the real SimGrid."""

import json
import subprocess
from pathlib import Path
from typing import Any

from decision.model.platform import Platform

PROBE = Path(__file__).with_name("simgrid_probe.py")


def probe(python: str, platform: Platform, pairs: list[tuple[str, str]], tasks: list[Any]) -> dict[str, Any]:
    """What SimGrid says of a platform's file."""
    wanted = {"platform": platform.path, "energy": platform.has_power, "master": platform.master}
    text = json.dumps(wanted | {"pairs": pairs, "tasks": tasks})
    run = subprocess.run([python, str(PROBE)], input=text, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)
