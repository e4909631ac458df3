"""Batsim's external events: one JSON object per line, such as machines that leave and return, or power that does.

Those of Batsim 5 are all generic, with a text that it does not read. Where the text is the JSON of an event that Batsim
4 or we know, the event is that one.
"""

import math
import os
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, NoReturn

import msgspec
from msgspec import Meta

from decision.model.demand import submit_times
from decision.model.errors import ConfigError, InputError
from decision.model.hosts import parse_hosts
from decision.model.workload import FORWARDED, GENERIC, POWER_SUPPLY, MachineEvent, Workload

from .files import read_bytes
from .json_text import DECODE_ERRORS, compact, explain_text, explain_value

_MOST = 1 << 30  # hosts
_RANK = {"machine_available": 0, "machine_unavailable": 1}  # Batsim's order of events at one instant


class _Event(msgspec.Struct):
    type: str
    timestamp: Annotated[float, Meta(ge=0)]
    data: Any = None
    resources: Any = None
    hosts: Any = None
    forecast: Any = ()
    value: Any = None


_EVENT = msgspec.json.Decoder(_Event)


def load_events(
    path: str | os.PathLike[str], forward_unknown: bool = False, supply: bool = False
) -> list[MachineEvent]:
    """Read external events, sorted as Batsim does: by time, then available before unavailable before others.

    Args:
        path: a file with one JSON object per line; empty lines are skipped.
        forward_unknown: accept events of types that Batsim does not know (its ``--forward-unknown-events``).
        supply: accept the events that we know and Batsim only forwards. Of type ``power_supply``: `hosts` may compute
            from then on, and `forecast` (a list) are expected to, by step; of ``carbon_intensity`` and
            ``energy_price``: what a kWh emits (g) or costs from then on is `value`.

    Raises:
        InputError: if Batsim would refuse the file; one line with file, line and field.
    """
    return [event for _, event in load_placed_events([path], forward_unknown, supply)]


def load_placed_events(
    paths: Iterable[str | os.PathLike[str]], forward_unknown: bool = False, supply: bool = False
) -> list[tuple[str, MachineEvent]]:
    """The events of all files, in the order of `load_events`, each with its file and line; errors as there."""
    events = [
        (where := f"{path}, line {number}", _event(line, where, forward_unknown, supply))
        for path in paths
        for number, line in enumerate(read_bytes(path).splitlines(), 1)
        if line.strip()
    ]
    return sorted(events, key=lambda placed: (placed[1].timestamp, _RANK.get(placed[1].type, 2)))


def check_supply(events: Sequence[MachineEvent], nb_hosts: int, workloads: Sequence[Workload]) -> None:
    """Refuse a supply of more hosts than there are, and one that ends before the jobs have come.

    Raises:
        ConfigError: naming the number of hosts, or both times.
    """
    supply = [event for event in events if event.type == POWER_SUPPLY]
    if not supply:
        return
    most = max(supply, key=lambda event: event.hosts[0])
    if most.hosts[0] > nb_hosts:
        what = f"{POWER_SUPPLY} at t={most.timestamp:.12g} s has {most.hosts[0]} hosts, and the platform has {nb_hosts}"
        raise ConfigError(f"{what}; make the supply for this platform")
    last = max((float(submit_times(workload).max()) for workload in workloads if workload.jobs), default=0.0)
    end = max(event.timestamp for event in supply)
    if end < last:
        what = f"the supply of power ends at t={end:.12g} s, and the last job is submitted at t={last:.12g} s"
        raise ConfigError(f"{what}; make it longer (decision workload supply makes one for a workload)")


def _event(line: bytes, where: str, forward_unknown: bool, supply: bool) -> MachineEvent:
    fields = _decode(line, where)
    if fields.type == GENERIC and (meant := _meant(fields)):
        return _event(meant, where, forward_unknown, supply)
    hosts: tuple[int, ...] = ()
    known, value = supply or forward_unknown, 0.0
    if fields.type in _RANK:
        hosts = _hosts(fields.resources, where)
    elif fields.type == POWER_SUPPLY and known:
        hosts = read_forecast(fields.hosts, fields.forecast, where)
    elif fields.type in FORWARDED and known:
        value = _rate(fields.value, where)
    elif not forward_unknown and not (fields.type == GENERIC and isinstance(fields.data, str)):
        _refuse_type(fields.type, where)
    return MachineEvent(timestamp=fields.timestamp, type=fields.type, hosts=hosts, value=value, source=compact(line))


def _meant(fields: _Event) -> bytes | None:
    """The event that a generic one's text is; None where that is not an event."""
    try:
        said = msgspec.json.decode(fields.data) if isinstance(fields.data, str) else None
    except DECODE_ERRORS:
        return None
    if not isinstance(said, dict) or said.get("type") not in (*_RANK, *FORWARDED):
        return None
    return msgspec.json.encode({**said, "timestamp": fields.timestamp})


def load_texts(path: str | os.PathLike[str], name: str) -> list[MachineEvent]:
    """Read external events as Batsim 5 takes them, by time: the source of each is its id and its text, as JSON.

    Args:
        path: a file with one generic event per line; empty lines are skipped.
        name: of the list, with which ids begin.

    Raises:
        InputError: if Batsim 5 would refuse the file; one line with file, line and field.
    """
    events: list[MachineEvent] = []
    for number, line in enumerate(read_bytes(path).splitlines(), 1):
        if line:
            where = f"{path}, line {number}"
            fields = _decode(line, where)
            if fields.type != GENERIC:
                reason = f"must be {GENERIC!r} for Batsim 5; found {fields.type!r}"
                raise InputError(f"{where}, field 'type': {reason}")
            if not isinstance(fields.data, str):
                raise InputError(f"{where}, field 'data': must be a text; found {fields.data!r}")
            source = msgspec.json.encode({"id": f"{name}!{len(events)}", "data": fields.data})
            events.append(MachineEvent(timestamp=fields.timestamp, type=GENERIC, hosts=(), source=source))
    return sorted(events, key=lambda event: event.timestamp)


def converted_events(path: str | os.PathLike[str], to: str) -> bytes:
    """A file of external events in the form of Batsim 4 or 5 (`to`); lines that have it already stay as they are.

    Raises:
        InputError: if a line is not an event.
    """
    lines = []
    for number, line in enumerate(read_bytes(path).splitlines(), 1):
        if line.strip():
            fields = _decode(line, f"{path}, line {number}")
            if to == "5" and fields.type != GENERIC:
                said = {key: value for key, value in msgspec.json.decode(line).items() if key != "timestamp"}
                text = msgspec.json.encode(said).decode()
                line = msgspec.json.encode({"type": GENERIC, "timestamp": fields.timestamp, "data": text})
            elif to == "4" and fields.type == GENERIC:
                line = _meant(fields) or line
            lines.append(line + b"\n")
    return b"".join(lines)


def _decode(line: bytes, where: str) -> _Event:
    try:
        return _EVENT.decode(line)
    except msgspec.ValidationError as error:
        raise InputError(explain_value(where, error, line)) from None
    except DECODE_ERRORS as error:
        raise InputError(f"{where}: not a JSON event: {explain_text(error, line)}") from None


def _hosts(text: Any, where: str) -> tuple[int, ...]:
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"{where}, field 'resources': must be a host set like \"0-3 7\"; found {text!r}")
    try:
        return tuple(parse_hosts(text))
    except ConfigError as error:
        raise InputError(f"{where}, field 'resources': {error}") from None


def read_forecast(hosts: Any, forecast: Any, where: str) -> tuple[int, ...]:
    """How many hosts have power, and how many will by step, as a ``power_supply`` says.

    Raises:
        InputError: if it does not say it; `where` begins the line.
    """
    if not _is_number_of_hosts(hosts):
        raise InputError(f"{where}, field 'hosts': must be a whole number, 0 or more; found {hosts!r}")
    if not isinstance(forecast, list | tuple) or not all(map(_is_number_of_hosts, forecast)):
        raise InputError(f"{where}, field 'forecast': must be a list of whole numbers, 0 or more; found {forecast!r}")
    return (hosts, *forecast)


def _rate(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InputError(f"{where}, field 'value': must be a finite number; found {value!r}")
    return float(value)


def _is_number_of_hosts(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST


def _refuse_type(kind: str, where: str) -> NoReturn:
    known = " or ".join(_RANK)
    raise InputError(f"{where}, field 'type': {kind!r} is unknown; use {known}, or forward unknown events")
