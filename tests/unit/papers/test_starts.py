"""Forecasts of starts, judged: a log that is finished is not judged again."""

from pathlib import Path

import pytest

from decision.files.workload import Selection
from decision.papers.starts import LogAsked, reproduce_starts


def test_a_log_that_is_finished_is_kept(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    rows = [
        f"{n} {60 * n} -1 {150 + 90 * (n % 3)} 2 -1 -1 2 {300 + 120 * (n % 2)} -1 1 {n % 2} -1 -1 -1 -1 -1 -1"
        for n in range(60)
    ]
    log = tmp_path / "short.swf"
    log.write_text("; MaxProcs: 4\n" + "\n".join(rows) + "\n")
    asked = LogAsked(path=log, policy="easy", hosts=4, as_recorded=False, selection=Selection(), moments=6, futures=10)
    seen: list[int] = []
    found = []
    for _ in range(2):
        found.append(reproduce_starts([asked], tmp_path / "out", lambda done, of: seen.append(done)))
        assert seen[-1] == 6 and seen.count(6) == 1  # the second time no moment is judged
    assert found[0] == found[1]
    assert found[0].tables[0].title == "short"
    assert len(list((tmp_path / "out" / "runs").iterdir())) == 1
