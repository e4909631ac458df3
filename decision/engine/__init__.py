"""The embedded simulator: Batsim's rules without Batsim, twice.

Design
------
Time is implemented twice: what happens at one instant and in which order is hard to get right, and two ways that agree
are how we know. `reference` is the rules in plain Python, actor by actor as Batsim and SimGrid have them, to be read.
`kernels` is the same on arrays, compiled, for speed. Neither imports the other. Property tests give both the same
random worlds and compare their questions, errors and results; recorded sessions of a real Batsim hold both.

What is not time exists once, and both engines use it:

- `rules`: Batsim's options and numbers, what cannot be simulated, and the words for what is impossible in its time;
- `truth`: what jobs really do, as leaf tasks and as arrays;
- `commands`: the reader of commands, from a decision process's events to what an engine has to do;
- `batsim_words`: the writer of questions, from what an engine knows to Batsim's events.

The compiled engine in layers: `compiled` owns the arrays, steps through a run (`decision.simulation` loops over it
without any messages) and makes its record, keeping in files what would fill memory in a long run;
`batsim4` adds the messages; `batsim5` is the same in the place of a Batsim 5. What jobs really do
is in `kernels.arrays.Truth`, which no policy sees; what a scheduler may know is in `decision.state`, which the engine
changes through the same transitions as a decision process that hears of it.

Rejected: one engine, in Python with compiled parts; actors as generators are what makes the reference readable, and
what cannot be compiled.
"""
