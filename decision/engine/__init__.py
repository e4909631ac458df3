"""The embedded simulator: Batsim's rules without Batsim, twice.

Design
------
Time is implemented twice: what happens at one instant and in which order is hard to get right, and two ways that agree
are how we know. `reference` is the rules in plain Python, actor by actor as Batsim and SimGrid have them, to be read.
`kernels` is the same on arrays, compiled, for speed. Neither imports the other. Property tests give
both the same random worlds and compare their questions, errors and results; recorded sessions of a real Batsim hold
both.

What is not time exists once, and both engines use it:

- `options`, `profiles`: what is simulated, and what is refused before it begins;
- `commands_in`: the reader of commands, from a decision process's events to what an engine has to do (`command_kinds`);
- `batsim_words`: the writer of questions, from what an engine knows to Batsim's events;
- `refusals`: the words for what is impossible when its time comes; `constants`: Batsim's and SimGrid's numbers.

The compiled engine in layers: `truth` turns workloads into arrays (`names`: what their numbers mean), `compiled` owns
the arrays and steps through a run (`decision.simulation` loops over it without any messages), `embedded` adds the
messages, `result` the record. `embedded5` is the same in the place of a Batsim 5, with `calls`, `words5` and
`busy_hosts`. What jobs really do is in `kernels.arrays.Truth`, which no policy sees; what a scheduler may know is in
`decision.state`, which the engine changes through the same transitions as a decision process that hears of it.

Rejected: one engine, in Python with compiled parts; actors as generators are what makes the reference readable, and
what cannot be compiled.
"""
