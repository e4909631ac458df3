# ruff: noqa: N802, N815 (pybatsim calls its methods so)
"""Any of our policies as a scheduler of pybatsim 3.2.1, started by pybatsim's own launcher.

::

    pybatsim decision.pybatsim:Policy -o '{"policy": "saf+easy,guard=1.5x"}'

Design
------
The policy is asked by the agent of ``decision serve`` (`decision.batsim.agent`), which reads Batsim's message as it
came and writes the reply; what it commands is then said by pybatsim's own calls. So decisions are the same to the last
digit, and pybatsim's counters, its log and its socket for events are right. Rejected: putting the events together from
pybatsim's callbacks, which leave out when a job was submitted and when a host has switched.

pybatsim's launcher takes files: of ``decision.pybatsim:Policy`` it reads what is before the first dot, and looks in
that module for the class of its name with a capital letter, which is `decision.Decision`. Of ``decision/pybatsim.py``
it imports the module of the package, wherever that is installed, and looks for `Pybatsim`. Both are `Policy`.

`decision.batsim.pybatsim` is the other direction: schedulers of pybatsim in the place of our policies.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from batsim.batsim import BatsimScheduler
from procset import ProcSet

from decision.batsim.agent import make_agent
from decision.files import load_platform
from decision.model.errors import ConfigError, DecisionError, flag, text, whole
from decision.model.hosts import nearest
from decision.policies.registry import find_agent
from decision.protocol import JsonCodec
from decision.protocol import messages as m
from decision.rl.learning.checkpoint import require_gates

_OPTIONS = ("policy", "platform", "seed", "force")


class Policy(BatsimScheduler):
    """A scheduler of pybatsim that decides as a policy of ours.

    Args:
        options: what pybatsim's ``-o`` or ``-O`` gives. ``policy``: name and options, as for ``decision serve``;
            ``platform``: the file of the platform, for policies that use speeds, power or topology; ``seed``: of the
            policy, 0; ``force``: whether a checkpoint may be used that failed its gates, false.

    Raises:
        SystemExit: with one line, for a mistake in the options and for whatever `decision serve` would end with: in
            pybatsim's launcher nobody else would say it in one.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        self._question: bytes | None = None  # Batsim's last message
        self._bs: Any = None  # pybatsim's Batsim
        self._codec = JsonCodec()
        try:
            self._agent = _agent_of(options)
            self._agent.get_ready()
        except DecisionError as error:
            raise SystemExit(f"error: {error}") from None

    @property
    def bs(self) -> Any:
        """pybatsim's end of the conversation, which sets this before its first message comes."""
        return self._bs

    @bs.setter
    def bs(self, bs: Any) -> None:
        self._bs, receive = bs, bs.network.recv

        def listen(blocking: bool = False) -> Any:
            message = receive(blocking=blocking)
            if message is not None:
                self._question = json.dumps(message).encode()
                _leave_out_ended(message)
            return message

        bs.network.recv = listen

    def onSimulationBegins(self) -> None:
        """Refuse pybatsim's checks, which pass on no more than a part of what Batsim says."""
        if self._question is None:
            why = "pybatsim's --protect passes on neither machine events nor the end of a message; leave it out"
            raise SystemExit(f"error: {why}, each plan is checked before it is sent")

    def onNoMoreEvents(self) -> None:
        """Decide: all events of the message have passed."""
        try:
            reply = self._agent.handle(self._question or b"")
        except DecisionError as error:
            raise SystemExit(f"error: {error}") from None
        for command in self._codec.decode(reply).events:
            self._say(command)

    def onDeadlock(self) -> None:
        """End: Batsim has sent nothing for as long as pybatsim waits."""
        raise SystemExit(
            "error: Batsim sends nothing more; if it only takes its time, let pybatsim wait longer with -t"
        )

    def _say(self, command: m.Event) -> None:
        """Give a command by pybatsim's call for it."""
        bs = self._bs
        match command:
            case m.ExecuteJob(data=data):
                job = bs.jobs[data.job_id]
                job.allocation = ProcSet.from_str(data.alloc)
                bs.execute_job(job)
            case m.RejectJob(data=data):
                bs.reject_jobs_by_id([data.job_id])
            case m.KillJob(data=data):
                bs.kill_jobs([bs.jobs[job_id] for job_id in data.job_ids])
            case m.SetResourceState(data=data):
                bs.set_resource_state(ProcSet.from_str(data.resources), data.state)
            case m.CallMeLater(data=data):
                bs.wake_me_up_at(data.timestamp)
            case m.RegisterProfile(data=data):
                bs.register_profiles(data.workload_name, {data.profile_name: data.profile})
            case m.RegisterJob(data=data):
                fields = data.job.fields
                bs.register_job(data.job_id, fields["res"], fields["walltime"], fields["profile"], fields["subtime"])
            case m.Notify():
                bs.notify_registration_finished()

    def _passes(self, *_: Any) -> None:
        """An event of the message, which is read whole once all have passed."""

    onJobSubmission = onJobCompletion = onJobsKilled = onJobMessage = onRequestedCall = _passes
    onMachinePStateChanged = onReportEnergyConsumed = onAddResources = onRemoveResources = _passes
    onNotifyEventMachineUnavailable = onNotifyEventMachineAvailable = onNotifyGenericEvent = _passes


Pybatsim = Policy  # what pybatsim's launcher looks for in a file of this name


def _agent_of(options: Mapping[str, Any]) -> Any:
    """Who decides as the options say. Raises ConfigError."""
    for name in options:
        if name not in _OPTIONS:
            near = nearest(name, _OPTIONS)
            has = f"it has {', '.join(_OPTIONS)}, and a policy's own options stand behind its name"
            raise ConfigError(f"option {name!r} of -o: there is none{near} ({has})")
    if "policy" not in options:
        raise ConfigError("""option 'policy' of -o: name a policy, as in -o '{"policy": "easy"}'""")
    policy, platform = text("policy", options["policy"]), options.get("platform")
    if find_agent(policy) is not None:
        raise ConfigError(
            f"policy {policy} is pybatsim's own: start it with pybatsim itself, or with a guard around it"
        )
    if not flag("force", options.get("force", False)):
        require_gates(policy)
    facts = load_platform(Path(text("platform", platform))) if platform is not None else None
    return make_agent(policy, {}, platform=facts, seed=whole("seed", options.get("seed", 0)))


def _leave_out_ended(message: dict[str, Any]) -> None:
    """Take jobs out of the kills that pybatsim hears of which had ended before: it would look up their progress.

    pybatsim itself leaves them out only where all of them had ended.
    """
    for event in message["events"]:
        if event["type"] == "JOB_KILLED" and (progress := event["data"]["job_progress"]):
            event["data"]["job_ids"] = [job for job in event["data"]["job_ids"] if job in progress]
