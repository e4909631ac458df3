"""One call's work shared out among workers, and waited for: what a generation of an evolution needs.

Nothing is stored, so what a lost worker had is done by another one, and the call goes on as long as there is one.
"""

import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from typing import Any

from decision.model.errors import ConfigError

from .chunks import WorkerSources, check_same, own_sources
from .workers import AHEAD, STRIKES, WorkerLostError, working_at_once

Work = Callable[[Sequence[Any]], list[Any]]


def share_out(crew: Executor, work: Work, items: Sequence[Any]) -> list[Any]:
    """What `work` makes of the items, done in parts by workers, in the order of the items.

    Args:
        crew: who does it.
        work: a function that workers can import; what it makes of an item must not depend on the others.
        items: what is to be done.

    Raises:
        ConfigError: if a worker has another version of this package, or a part has taken three workers with it.
    """
    size = max(1, -(-len(items) // (AHEAD * working_at_once(crew))))
    parts = [items[at : at + size] for at in range(0, len(items), size)]
    under_way = [_given(crew, work, part) for part in parts]
    return [found for future, part in zip(under_way, parts, strict=True) for found in _found(crew, work, part, future)]


def _given(crew: Executor, work: Work, part: Sequence[Any]) -> "Future[list[Any]]":
    return crew.submit(_do, own_sources(), pickle.dumps((work, part)))


def _found(crew: Executor, work: Work, part: Sequence[Any], future: "Future[list[Any]]") -> list[Any]:
    lost = 0
    while True:
        try:
            return future.result()
        except WorkerLostError as error:
            lost += error.workers
            if lost >= STRIKES:
                raise ConfigError(
                    f"a part of the work has ended {lost} workers; give them more memory or time"
                ) from None
            future = _given(crew, work, part)


def _do(sources: tuple[Any, ...], content: bytes) -> list[Any]:
    """What a worker does."""
    check_same(WorkerSources(*sources))
    work, part = pickle.loads(content)
    found: list[Any] = work(part)
    return found
