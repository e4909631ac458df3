"""The nodes that jobs may have."""

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from .case import Case
from .jobs import SlurmJob
from .limits import Buckets
from .nodes import Node, Partition
from .text import is_nothing, read_hosts


def bitmap(nodes: Iterable[int], words: int) -> NDArray[np.uint64]:
    """A set of nodes as bits, (W,)."""
    bits = np.zeros(words * 64, np.uint8)
    bits[list(nodes)] = 1
    return np.packbits(bits, bitorder="little").view(np.uint64)


def nb_words(case: Case) -> int:
    """Words of a set of nodes."""
    return (len(case.nodes) + 63) // 64


class Masks:
    """The nodes that jobs may have, each set once."""

    def __init__(self, case: Case, limits: Buckets) -> None:
        self._limits = limits
        self._reserved: dict[str, set[str]] = {}
        for window in case.windows:
            if window.reservation:
                self._reserved.setdefault(window.reservation, set()).update(window.nodes)
        self._nodes, self._words = case.nodes, nb_words(case)
        self._known: dict[tuple[str, ...], int] = {}
        self.rows: list[NDArray[np.uint64]] = []

    def of(self, job: SlurmJob, partition: Partition) -> int:
        """The number of the set of a job in a partition."""
        typed = ",".join(sorted(name for name in job.gres if ":" in name))
        refused = not job.started and (not partition.takes(job.limit, job.nodes) or self._limits.refuses(job))
        names = (job.reservation, partition.name, job.features, job.exclude, typed)
        key = (*names, "refused" if refused else "")
        return self._number(key, lambda: [] if refused else self._allowed(job, partition, typed))

    def named(self, job: SlurmJob) -> int:
        """The number of the set of nodes that a job asks for by name; -1 where it names none."""
        names = read_hosts(job.nodelist)[: job.nodes_max or None]
        if not names:
            return -1
        numbers = [number for number, node in enumerate(self._nodes) if node.name in set(names)]
        return self._number(("named", ",".join(names)), lambda: numbers)

    def _number(self, key: tuple[str, ...], make: Callable[[], Iterable[int]]) -> int:
        """The number of a set, which is made where its key is new."""
        if key not in self._known:
            self._known[key] = len(self.rows)
            self.rows.append(bitmap(make(), self._words))
        return self._known[key]

    def _allowed(self, job: SlurmJob, partition: Partition, typed: str) -> list[int]:
        members = set(partition.nodes)
        members -= set(read_hosts(job.exclude))
        if job.reservation in self._reserved:
            members &= self._reserved[job.reservation]
        return [
            number
            for number, node in enumerate(self._nodes)
            if node.name in members
            and not node.down
            and has_features(node, job.features)
            and all(kind in node.gres_types for kind in filter(None, typed.split(",")))
        ]


def has_features(node: Node, wanted: str) -> bool:
    """Whether a node has the features of ``--constraint``: ``a&b``, ``a|b``, ``[a|b]``; counts are not looked at."""
    if is_nothing(wanted):
        return True
    plain = wanted.replace("[", "").replace("]", "").replace("(", "").replace(")", "").replace(",", "&")
    return any(
        all(part.split("*")[0].strip() in node.features for part in choice.split("&")) for choice in plain.split("|")
    )
