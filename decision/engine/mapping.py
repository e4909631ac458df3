"""Executors mapped onto hosts: several on one host share its speed."""

from typing import TYPE_CHECKING

import msgspec

from .profiles import Leaf, LeafKind

if TYPE_CHECKING:
    from .embedded import EmbeddedEngine


def mapped_leaves(
    engine: "EmbeddedEngine", job: int, hosts: list[int], mapping: dict[str, str | int]
) -> tuple[Leaf, ...]:
    """The job's leaves with one amount per allocated host: the sum of what its executors compute.

    `mapping` gives each executor, 0 to n - 1, a place in `hosts`.

    Raises:
        PolicyError: if it does not.
    """
    job_id, size = engine.job(job).id, int(engine.state.size[job])
    try:
        places = {int(executor): int(place) for executor, place in mapping.items()}
    except ValueError:
        places = {}
    if sorted(places) != list(range(len(mapping))) or not all(0 <= place < len(hosts) for place in places.values()):
        wanted = f"executors 0 to n-1 on places 0 to {len(hosts) - 1} of its allocation"
        raise engine.refuse(f"{job_id}: its mapping must put {wanted}; found {mapping}")
    if len(places) != size and not engine.truth.moldable[engine.sim.truth_of[job]]:
        raise engine.refuse(f"{job_id} needs {size} executors, {len(places)} given")
    return tuple(_mapped(leaf, places, len(hosts)) for leaf in engine.names.leaves[engine.sim.truth_of[job]])


def _mapped(leaf: Leaf, places: dict[int, int], nb_hosts: int) -> Leaf:
    if leaf.kind is LeafKind.DELAY:
        return leaf
    flops = [0.0] * nb_hosts
    for executor, place in places.items():
        flops[place] += _amount(leaf, executor, len(places))
    return msgspec.structs.replace(leaf, kind=LeafKind.FLOPS_VECTOR, amount=0.0, flops=tuple(flops))


def _amount(leaf: Leaf, executor: int, executors: int) -> float:
    if leaf.kind is LeafKind.FLOPS_VECTOR:
        return leaf.flops[executor]
    return leaf.amount / executors if leaf.kind is LeafKind.FLOPS_TOTAL else leaf.amount
