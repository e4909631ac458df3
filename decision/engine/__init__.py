"""The embedded simulator: Batsim's rules without Batsim, twice.

Design
------
`reference` and its siblings are the rules in plain Python, actor by actor as Batsim and SimGrid have them, to be read.
`embedded` is the same simulation on arrays, in kernels: `server` (mailbox, questions, replies), `rounds` (who acts when
at one instant), `activities` (time), `jobs`, `switches`, `power`, `commands`, `submitters`. Both talk in Batsim's own
messages (`ask`, `answer`), and property tests compare their whole traces; recorded sessions of a real Batsim hold both.

What jobs really do is in `arrays.Truth`, which no policy sees; what a scheduler may know is in `decision.state`, which
the engine changes through the same transitions as a decision process that hears of it. Without messages the compiled
engine runs in one loop with a compiled policy (`decision.simulation`), and `rewind` lets its arrays simulate again.
"""
