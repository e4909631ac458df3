"""Where Batsim 5 puts the executors of a job: on any number of hosts, by a strategy, by hand, or by part of a sequence.

A job has as many executors as it asks for hosts, unless a mapping by hand says otherwise. It may have other hosts than
so many, and a part of a sequence some of them only.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from decision.model.errors import ConfigError
from decision.model.hosts import parse_hosts
from decision.model.workload import Job
from decision.protocol import messages as m

from .profiles import LeafKind, LeafTask, on_hosts

_FILL = "FillOneHostCoresFirst"
_BY_HAND = "CustomExecutorToHostMapping"


class _Override(msgspec.Struct):
    """What a start says of one profile."""

    profile_id: str
    host_allocation: str
    executor_placement_type: str = ""
    executor_placement: dict[str, Any] = {}


def placed_leaves(
    job: Job, leaves: tuple[LeafTask, ...], data: m.ExecuteJobData, hosts: Sequence[int], cores: Sequence[int]
) -> tuple[LeafTask, ...]:
    """The leaves of a job with one amount for each of its hosts; the same where each executor has a host for itself.

    Args:
        job: that starts.
        leaves: what it does.
        data: the start.
        hosts: the job's, ascending.
        cores: of each host of the platform.

    Raises:
        ConfigError: where that cannot be; without the job's name.
    """
    others = _overrides(data, hosts)
    strategy = "" if data.strategy is UNSET else data.strategy
    mapping = None if data.mapping is UNSET else [int(data.mapping[str(i)]) for i in range(len(data.mapping))]
    own = _places(job, strategy, mapping, [cores[host] for host in hosts])

    def place(leaf: LeafTask) -> LeafTask:
        places, chosen = own, others.get(_full(leaf.profile, job))
        if chosen is not None:
            at = [hosts.index(host) for host in parse_hosts(chosen.host_allocation)]
            said = chosen.executor_placement
            by_hand = said.get("mapping", []) if chosen.executor_placement_type == _BY_HAND else None
            local = _places(job, str(said.get("strategy", "")), by_hand, [cores[hosts[each]] for each in at])
            places = [at[each] for each in local]
        if leaf.kind is LeafKind.FLOPS_VECTOR and len(leaf.flops) != len(places):
            raise ConfigError(
                f"profile {leaf.profile!r} is for {len(leaf.flops)} executors, and {len(places)} are placed"
            )
        return leaf if places == [*range(len(hosts))] else on_hosts(leaf, places, len(hosts))

    return tuple(map(place, leaves))


def _places(job: Job, strategy: str, mapping: Sequence[int] | None, cores: Sequence[int]) -> list[int]:
    """For each executor the index of its host, of which there is one for each of `cores`."""
    if mapping is not None:
        if not all(isinstance(place, int) and 0 <= place < len(cores) for place in mapping):
            raise ConfigError(f"a mapping must name hosts 0 to {len(cores) - 1} of its allocation; found {[*mapping]}")
        return [*mapping]
    slots = [host for host, some in enumerate(cores) for _ in range(some if strategy == _FILL else 1)]
    return [slots[executor % len(slots)] for executor in range(job.size)]


def _overrides(data: m.ExecuteJobData, hosts: Sequence[int]) -> Mapping[str, _Override]:
    """By the profile's full name."""
    if data.overrides is UNSET:
        return {}
    found: dict[str, _Override] = {}
    for said in data.overrides:
        try:
            override = msgspec.convert(said, _Override)
        except msgspec.ValidationError as error:
            raise ConfigError(f"profile_allocation_override: {error}") from None
        outside = set(parse_hosts(override.host_allocation)) - {*hosts}
        if outside:
            what = f"profile {override.profile_id!r} is to run on host {min(outside)}, which the job does not have"
            raise ConfigError(f"{what}: that is not supported; give the job all its hosts")
        found[override.profile_id] = override
    return found


def _full(profile: str, job: Job) -> str:
    return profile if profile.startswith(f"{job.workload}!") else f"{job.workload}!{profile}"
