"""The logs that the policy `learned` learns from and is judged on, and the parts that candidates schedule.

Ten real logs and three made ones, in four folds: what is learned from the logs of three folds is judged on those of the
fourth. The made logs and the parts that are made here are of one model, so they are one fold. Nothing is learned from
the log that is shipped, so that examples show what was learned on a log that it has not seen.
"""

import functools
from pathlib import Path
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from decision.computer.shipped import find_workload
from decision.estimates import apply_estimates
from decision.formats.selection import Selection
from decision.formats.swf import REQUESTED_TIME
from decision.generate.lublin import lublin_workload
from decision.model.columns import columns_of
from decision.model.reshape import at_load
from decision.model.workload import Workload
from decision.runs.whole import Log

LUBLIN = "lublin_10000"  # shipped
FILES: dict[str, tuple[str, int]] = {  # of each log: its file, and the field of the requested time
    "CTC": ("ctc.swf.gz", REQUESTED_TIME),
    "NASA": ("NASA-iPSC-1993-3.1-cln.swf", REQUESTED_TIME),
    "COARE": ("coare.swf.gz", REQUESTED_TIME),
    "Theta": ("theta_argonne.swf", 6),
    "Atlas": ("atlas.swf.gz", REQUESTED_TIME),
    "taurus": ("taurus_300days.json.gz", REQUESTED_TIME),
    "Curie": ("curie_25days.swf", REQUESTED_TIME),
    "Gaia": ("gaia.swf.gz", REQUESTED_TIME),
    "grid5000": ("grid5000-2016/delay_seed0.json", REQUESTED_TIME),
    "lublin_256": ("lublin_256.swf", REQUESTED_TIME),
    "lublin_256_2": ("lublin_256_2.swf", REQUESTED_TIME),
    LUBLIN: (LUBLIN, REQUESTED_TIME),
}
_MODEL = "model"  # what is made here
FOLDS: tuple[tuple[str, ...], ...] = (
    ("CTC", "NASA", "grid5000"),
    ("COARE", "Atlas", "Gaia"),  # what is learned without these is shipped
    ("Theta", "Curie", "taurus"),
    ("lublin_256", "lublin_256_2", LUBLIN, _MODEL),
)
_MADE_JOBS = 4000


class TrainingPart(NamedTuple):
    """What candidates schedule."""

    log: str  # of which it is a part
    workload: Workload


def path_of(data: Path, log: str) -> Path:
    """The file of a log in the folder; the shipped one is not there."""
    return find_workload(LUBLIN) if log == LUBLIN else data / FILES[log][0]


def log_of(data: Path, log: str) -> Log:
    """A log on a flat machine, with run times where it has no requested times."""
    selection = Selection(missing="runtime", time_field=FILES[log][1])
    return Log(workload=path_of(data, log), platform=None, hosts=0, selection=selection)


@functools.lru_cache(maxsize=1)
def training_parts(data: Path) -> tuple[TrainingPart, ...]:
    """Parts of all logs but the shipped one, some at another load. Raises InputError if a log cannot be read."""
    read = {log: log_of(data, log).read().workload for log in FILES if log != LUBLIN}
    return (
        TrainingPart("CTC", _part(read["CTC"], 40_000, 45_000)),
        TrainingPart("NASA", read["NASA"]),
        TrainingPart("COARE", read["COARE"]),
        TrainingPart("COARE", at_load(_part(read["COARE"], 10_000, 15_000), 0.7)),
        *(TrainingPart("Theta", _part(read["Theta"], begin, begin + 5000)) for begin in (3000, 14_000)),
        TrainingPart("Atlas", _part(read["Atlas"], 0, 20_000)),
        TrainingPart("taurus", read["taurus"]),
        TrainingPart("Curie", read["Curie"]),
        TrainingPart("Gaia", _part(read["Gaia"], 0, 26_000)),
        TrainingPart("grid5000", read["grid5000"]),
        TrainingPart("lublin_256", at_load(_part(read["lublin_256"], 0, 5000), 0.7)),
        TrainingPart("lublin_256_2", _part(read["lublin_256_2"], 0, 5000)),
        TrainingPart(_MODEL, _made(100, 1, 0.8)),
        TrainingPart(_MODEL, _made(1024, 4, 0.75)),
    )


def _part(workload: Workload, begin: int, end: int) -> Workload:
    """Jobs by order of submission."""
    return replace(workload, jobs=columns_of(workload.jobs).take(np.arange(begin, min(end, len(workload.jobs)))))


def _made(hosts: int, seed: int, load: float) -> Workload:
    rng = np.random.default_rng(seed)
    return at_load(apply_estimates(lublin_workload(rng, _MADE_JOBS, hosts), "tsafrir", rng), load)
