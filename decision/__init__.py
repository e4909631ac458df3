"""An external decision process for Batsim: heuristics and learned policies, one engine, one state.

Batsim (https://github.com/oar-team/batsim) simulates clusters on SimGrid and asks an external process
what to run where. This package is such a process, and it also carries an embedded engine with Batsim's
rules, so that the same policies run where nothing but Python is installed.

Design
------
One state, one writer, many event sources: the cluster is a struct of arrays (`decision.state`), only
`decision.state.transitions` changes it, and Batsim's messages, the embedded engine's clock and a training
step all go through the same transitions. Imports point one way (see `.importlinter`), so that a heuristic
run never loads torch and nothing below `decision.drivers` opens a socket.
"""

__version__ = "0.1.0"
