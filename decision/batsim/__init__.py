"""The only sockets and subprocesses: the conversation with a real Batsim, from either end.

Design
------
A `transport.Transport` has waits that are safe: it gives up after a timeout, notices that the peer has gone, and lets
signals end the wait. `zeromq` puts one between an agent or an engine without I/O and the network, and `launcher`
between an agent and a Batsim that it starts, in Docker too; `episodes` has those of environments; `conversation`
answers until the simulation ends, and records it or decides a recorded one again. `follower` keeps the cluster's state
as Batsim announces and reports it, and has what a Batsim 5 needs more. `agent`, which decides by it with one of our
policies, and `pybatsim`, with a scheduler written for pybatsim, take one message and return one reply
(`conversation.Responder`). `dynamic_jobs` are those that the decision process registers. `decision_component` asks the
component of a Batsim 5: a process, or a library, which has a process of its own (`library_child`).

A start is checked three times on its way to Batsim: the plan against the state (`decision.policies.prepared`), the
command against the protocol's ledger, and by Batsim itself. The first gives the error that names the policy's mistake.

Before it says anything, Batsim reads its files for as long as we need to load what a run needs. So the command line
starts that of a plain run first of all (`process.started_ahead`). Rejected: loading less, since both would still wait
for each other.

A Batsim that we start ends with us, whatever ends us: a shell waits for the end of a pipe that we hold, and then sends
SIGTERM. Batsim itself would wait for a reply for ever.

Waits are sliced: ten times a second they look at signals and at the child process. Rejected: a signal handler that
raises, which may leave half a line in a recording; a thread for each thing to watch.
"""
