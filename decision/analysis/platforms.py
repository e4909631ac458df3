"""What there is to see of a platform: hosts that are equal, and what each pstate is for."""

from collections.abc import Iterator

import msgspec

from decision.model.platform import Host, Platform, PowerState

_OF_ONE_HOST = ("role", "server")  # properties that do not make a host another kind


class PstateUse(msgspec.Struct, frozen=True):
    """A pstate and what it is for."""

    number: int
    state: PowerState
    use: str  # "computing", "asleep", "falling asleep" or "waking up"

    @property
    def seconds(self) -> float | None:
        """How long a switch takes; None of what is no switch."""
        return 1 / self.state.speed if self.use in _SWITCHES else None


_SWITCHES = ("falling asleep", "waking up")


def host_groups(platform: Platform) -> list[list[Host]]:
    """Compute and storage hosts, those together that differ in name and server only; in the order of ids."""
    groups: dict[object, list[Host]] = {}
    for host in platform.hosts + platform.storage:
        properties = tuple(sorted((k, v) for k, v in host.properties.items() if k not in _OF_ONE_HOST))
        stores = host.id >= len(platform.hosts)
        key = (stores, host.pstates, host.sleep, host.initial_pstate, host.has_power, properties)
        groups.setdefault(key, []).append(host)
    return list(groups.values())


def pstate_uses(host: Host) -> Iterator[PstateUse]:
    """All pstates of a host in order."""
    off = {sleep.switch_off for sleep in host.sleep}
    on = {sleep.switch_on for sleep in host.sleep}
    for number, state in enumerate(host.pstates):
        use = "asleep" if number in host.sleep_pstates else "computing"
        use = "falling asleep" if number in off else "waking up" if number in on else use
        yield PstateUse(number, state, use)
