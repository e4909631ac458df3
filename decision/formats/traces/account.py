"""What became of each record of a file: a job, a part of one, or left out for a reason."""

from collections.abc import Iterable

import msgspec

REASONS = {
    "step": "steps of jobs",
    "never_started": "that never started",
    "not_ended": "that did not end",
    "no_time": "with an unknown or zero run time",
    "no_size": "with an unknown or zero size",
    "repeat": "of a job seen before",
    "malformed": "whose fields do not fit",
    "other_event": "of another kind than a job's end",
    "partial": "of parts of a job",
}
NAMED = 5  # lines of a reason whose numbers are kept


class LeftOut(msgspec.Struct):
    """Records that became no jobs, for one reason."""

    count: int = 0
    lines: list[int] = []  # the first of them


class Account(msgspec.Struct):
    """The records of one or more files: all are jobs, joined with another one to a job, or left out."""

    records: int = 0
    joined: int = 0
    left_out: dict[str, LeftOut] = {}  # by `REASONS`
    lost: dict[str, int] = {}  # what a workload cannot say, with how many jobs it is true of

    def leave_out(self, reason: str, lines: Iterable[int]) -> None:
        """Count records as left out; `lines` are where they stand."""
        found = [int(line) for line in lines]
        if found:
            entry = self.left_out.setdefault(reason, LeftOut())
            entry.count += len(found)
            entry.lines = sorted([*entry.lines, *found])[:NAMED]

    def lose(self, what: str, jobs: int) -> None:
        """Count jobs of which something cannot be said."""
        if jobs:
            self.lost[what] = self.lost.get(what, 0) + int(jobs)
