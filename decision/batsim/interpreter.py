"""Between a Batsim 5 and a scheduler that knows Batsim 4: what one says, as the other would.

What cannot be said to Batsim 5 is refused by its dialect or here, by name.
"""

from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from decision.model.errors import PolicyError
from decision.model.hosts import format_hosts, parse_hosts
from decision.model.platform import Host
from decision.protocol import Message
from decision.protocol import messages as m

from . import edc
from .announced import announced_platform


class Interpreter:
    """Translates one conversation; `name` is the scheduler's."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._hosts: tuple[Host, ...] = ()
        self._pstate: dict[int, int] = {}
        self._alloc: dict[str, str] = {}  # hosts of each job that runs
        self._calls = 0

    def greet(self) -> m.HelloData:
        """The answer to Batsim 5's first message; jobs and profiles may be registered without being asked for."""
        return edc.hello(self._name, suspends=False)

    # --- From Batsim 5 ------------------------------------------------------------------------------------------

    def question(self, message: Message) -> Message:
        """A question, as Batsim 4 would ask it."""
        events = [said for event in message.events if (said := self._event(event)) is not None]
        return Message(message.now, tuple(events))

    def _event(self, event: m.Event) -> m.Event | None:
        match event:
            case m.SimulationBegins(data=data):
                self._hosts = announced_platform(data.compute_resources).hosts
                self._pstate = {host.id: host.initial_pstate for host in self._hosts}
                resources = tuple(self._resource(resource) for resource in data.compute_resources)
                data = replace(data, compute_resources=resources, external_events=UNSET, batsim=UNSET)
                return m.SimulationBegins(event.timestamp, data)
            case m.JobSubmitted(data=data):
                fields = {**data.job.fields, "profile": data.job.profile.rpartition("!")[2]}
                return m.JobSubmitted(event.timestamp, replace(data, job=m.JobDescription(**fields)))
            case m.JobCompleted(data=data):
                return m.JobCompleted(event.timestamp, replace(data, alloc=self._alloc.pop(data.job_id, "")))
            case m.ResourceStateChanged(data=data):
                self._pstate.update(dict.fromkeys(parse_hosts(data.resources), int(data.state)))
                return m.ResourceStateChanged(event.timestamp, replace(data, at_once=UNSET))
            case m.RequestedCall():
                return m.RequestedCall(event.timestamp)
            case m.ExternalEvent(data=data):
                return edc.obeyed(event) or m.Notify(event.timestamp, m.NotifyData(type="generic", data=data.text))
        return event

    @staticmethod
    def _resource(resource: m.Resource) -> m.Resource:
        properties = {"role": "", **resource.properties}
        return replace(resource, properties=properties, pstate=UNSET, cores=UNSET, speeds=UNSET)

    # --- To Batsim 5 --------------------------------------------------------------------------------------------

    def reply(self, message: Message) -> Message:
        """A reply to Batsim 4, as Batsim 5 takes it.

        Raises:
            PolicyError: if it says what Batsim 5 has no word for.
        """
        events: list[m.Event] = []
        for event in message.events:
            match event:
                case m.Query():
                    raise PolicyError(f"{self._name} asks for energy, which Batsim 5 tells only by probes")
                case m.CallMeLater(data=data):
                    events.append(m.CallMeLater(event.timestamp, self._call(data.timestamp)))
                case m.SetResourceState(data=data):
                    events += self._switches(event.timestamp, data)
                case _:
                    if isinstance(event, m.ExecuteJob):
                        self._alloc[event.data.job_id] = event.data.alloc
                    events.append(event)
        return Message(message.now, tuple(events))

    def _call(self, time: float) -> m.CallMeLaterData:
        self._calls += 1
        return m.CallMeLaterData(edc.milliseconds(time), f"call {self._calls}", "ms")

    def _switches(self, time: float, data: m.SetResourceStateData) -> list[m.Event]:
        pstate, groups = int(data.state), dict[bool, list[int]]()
        for host in parse_hosts(data.resources, len(self._hosts)):
            present = self._pstate[host]
            if present != pstate:
                facts = self._hosts[host]
                at_once = facts.is_computing_pstate(present) and facts.is_computing_pstate(pstate)
                groups.setdefault(at_once, []).append(host)
        said: list[Any] = []
        for at_once, hosts in groups.items():
            change = m.SetResourceStateData(format_hosts(hosts), data.state, at_once)
            said.append(m.SetResourceState(time, change))
        return said
