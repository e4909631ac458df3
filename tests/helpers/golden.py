"""Where the recorded truth is: sessions of a real Batsim 4.2.1, and schedules of batsched under it."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
SESSIONS = ROOT / "tests" / "golden" / "sessions"
SCHEDULES = ROOT / "tests" / "golden" / "schedules"
SCENARIOS = sorted(folder.parent.name for folder in SESSIONS.glob("*/session.jsonl"))
CASES = sorted(folder.parent.name for folder in SCHEDULES.glob("*/workload.json"))
