"""The only sockets and subprocesses: the conversation with a real Batsim, from either end.

Design
------
`wire.Wire` is a socket that waits well: it gives up after a while, notices that the peer has gone, and lets
signals end the wait. `zmq_loop` (our decision process), `standin` (our engine in Batsim's place) and `launcher`
(a Batsim that we start) put it between a sans-I/O agent or engine and the network. Waits are sliced rather than
interrupted, because a signal handler that raises may leave half a line in a recording.
"""
