"""The only sockets and subprocesses: the conversation with a real Batsim, from either end.

Design
------
`transport` is an end whose waits are safe: it gives up after a timeout, notices that the peer has gone, and lets
signals end the wait (`signals`). `zeromq` puts it between an agent or an engine without I/O and the network; `process`
does so for a Batsim that it starts, in Docker too. `agent` decides with one of our policies and `pybatsim` with a
scheduler written for pybatsim: both take one message and return one reply (`conversation.Responder`). `conversation`
asks and answers until a simulation ends, records it, and repeats a recorded one. `announced` is the platform that a
Batsim tells of, `dynamic_jobs` what becomes of suspended and failed jobs, and `kernels` keep the agent's copy of the
state and ask the policy about it. For a Batsim 5, `decision_component` asks a process or a library, which has a process
of its own (`library_child`).

A start is checked three times on its way to Batsim: the plan against the state (`decision.policies.plan_check`), the
command against the protocol's ledger, and by Batsim itself. The first gives the error that names the policy's mistake.

Before it says anything, Batsim reads its files for as long as we need to load what a run needs. So the command line
starts that of a plain run first of all (`process.started_ahead`). Rejected: loading less, since both would still wait
for each other.

A Batsim that we start ends with us, whatever ends us: a shell waits for the end of a pipe that we hold, and then sends
SIGTERM. Batsim itself would wait for a reply for ever.

Waits are sliced: ten times a second they look at signals and at the child process. Rejected: a signal handler that
raises, which may leave half a line in a recording; a thread for each thing to watch.
"""
