"""The ids of an engine's jobs, by number."""

from collections.abc import Sequence
from typing import overload

from decision.engine.embedded import EmbeddedEngine
from decision.state.cluster import N_JOBS


class JobNames(Sequence[str]):
    """Looks an id up when it is asked for; as long as jobs have been submitted."""

    def __init__(self, engine: EmbeddedEngine) -> None:
        self._engine = engine

    def __len__(self) -> int:
        return int(self._engine.state.count[N_JOBS])

    @overload
    def __getitem__(self, number: int) -> str: ...
    @overload
    def __getitem__(self, number: slice) -> list[str]: ...
    def __getitem__(self, number: int | slice) -> str | list[str]:
        if isinstance(number, slice):
            return [self._engine.job(i).id for i in range(*number.indices(len(self)))]
        return self._engine.job(number).id
