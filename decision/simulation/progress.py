"""What is told of a run while it goes."""

from collections.abc import Callable

from decision.state.cluster import ClusterState

Progress = Callable[[float, ClusterState | None], None]  # simulated time in seconds; the state, where it is known
