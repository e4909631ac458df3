"""The only sockets and subprocesses: the conversation with a real Batsim, from either end.

Design
------
`wire.Wire` is a socket that waits well: it gives up after a while, notices that the peer has gone, and lets
signals end the wait. `zmq_loop` puts it between a sans-I/O agent or engine and the network; `launcher` does so for a
Batsim that it starts, `standin` for our engine in Batsim's place. `inprocess` joins an engine and an agent without a
network, and `whole_run` goes from files to files whoever simulates. `conversion` goes from files to files too, and
without a simulation: it is here because it needs readers and makers, which do not know one another.

Waits are sliced: ten times a second they look at signals and at the child process. Rejected: a signal handler that
raises, which may leave half a line in a recording; a thread per thing to watch.

`side_by_side` does many tasks in processes of their own and keeps each result in a file named by a hash of its
definition and of our sources (`kept`); `comparison_plan` and `comparing` are ``decision compare``. Whoever kills it, a
result is whole or absent, and nothing is done twice. What must compile does so alone, first: numba would let each
process compile the same. Rejected: one file of results, which processes would have to share; forked workers, which
inherit the locks of threads that they do not have.
"""
