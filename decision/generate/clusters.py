"""Clusters without network: equal hosts, with the power states of a measured Grid'5000 cluster or simpler ones."""

from decision.model.platform import Host, Platform, PowerState, SleepState

TAURUS_SPEED = 12 * 11.77e9  # flop/s: a host of 12 cores, seen as one resource

# Taurus (Grid'5000 Lyon, Dell R720, 2 x Xeon E5-2630): watts of a computing host at each frequency with its speed
# relative to the first, the idle power, and what falling asleep and waking up take: the measurements published
# with Batsim's energy platforms.
_TAURUS_FREQUENCIES = (
    (1.0000, 190.738),
    (0.8896, 171.02),
    (0.8368, 165.62),
    (0.8057, 160.47),
    (0.7622, 155.729),
    (0.7249, 151.3),
    (0.6878, 146.92),
    (0.6468, 142.95),
    (0.6078, 138.928),
    (0.5863, 135.368),
    (0.5009, 132.519),
    (0.4921, 128.87),
    (0.4498, 125.88),
)
_IDLE_WATTS = 95.0
_SLEEP_WATTS = 9.75
_OFF_SECONDS, _OFF_WATTS = 6.1, 100.997
_ON_SECONDS, _ON_WATTS = 151.52, 125.174
_SLEEP_SPEED = 1e-3  # flop/s; nothing is computed asleep, but SimGrid wants a speed


def taurus(nb_hosts: int = 16) -> Platform:
    """Hosts like those of Grid'5000's taurus: 13 frequencies, one sleep state that takes time and energy to switch."""
    computing = [_computing(round(TAURUS_SPEED * share, -7), watts) for share, watts in _TAURUS_FREQUENCIES]
    sleep = len(computing)
    pstates = (
        *computing,
        _constant(_SLEEP_SPEED, _SLEEP_WATTS),
        _constant(1 / _OFF_SECONDS, _OFF_WATTS),
        _constant(1 / _ON_SECONDS, _ON_WATTS),
    )
    names = [f"taurus-{number}" for number in range(1, nb_hosts + 1)]
    return _platform(names, pstates, (SleepState(sleep, sleep + 1, sleep + 2),), {"wattage_off": f"{_SLEEP_WATTS}"})


def simple_cluster(nb_hosts: int, speed: float = TAURUS_SPEED) -> Platform:
    """Hosts with one pstate of `speed` flop/s that draw 95 W idle and 190.738 W computing, and never sleep."""
    names = [f"node-{number:03d}" for number in range(nb_hosts)]
    return _platform(names, (_computing(speed, _TAURUS_FREQUENCIES[0][1]),))


def _computing(speed: float, watts: float) -> PowerState:
    return PowerState(speed, _IDLE_WATTS, _IDLE_WATTS, watts)


def _constant(speed: float, watts: float) -> PowerState:
    return PowerState(speed, watts, watts, watts)


def _platform(
    names: list[str],
    pstates: tuple[PowerState, ...],
    sleep: tuple[SleepState, ...] = (),
    properties: dict[str, str] | None = None,
) -> Platform:
    ordered = sorted(names, key=str.encode)  # Batsim's order of ids
    return Platform(
        hosts=tuple(
            Host(id=number, name=name, pstates=pstates, sleep=sleep, has_power=True, properties=properties or {})
            for number, name in enumerate(ordered)
        )
    )
