"""What people see of results: comparisons in words, learning curves, pictures, pages in HTML and as PDF.

Design
------
Nothing is computed here that a program would want: figures are made by `decision.experiments`, which knows no picture.

Pictures (`plots`) are drawn with matplotlib alone, from the step functions of `decision.experiments.results`. Rejected:
drawing them with evalys 4.0.7, which takes 91 s for the Gantt chart of 10,000 jobs on 256 hosts (ours takes 2 s), fails
in part of its plots, and cannot put several runs on one time axis. Its own pictures are drawn for who asks for them, in
`evalys` alone. All others are drawn in one style, for a `plots.Paper`, whose width and type size decide how many
panels stand in a row; it is ambient, as matplotlib's own settings are, so that no function between a command and a
picture passes it on. Whatever is too small for a pixel still leaves ink: `reservation_timeline` is a raster that asks
what any job of a pixel does. Runs are drawn side by side, and one run is a list of one. `pages` puts everything into
one HTML file: its charts are drawn on a canvas by its own script, for which 10,000 jobs are 10 ms. Rejected: SVG, which
needs an element for each piece of a job, and a plotting library in the page (megabytes, or a network).

`comparison` says a comparison in words, and its page is made from ``comparison.json`` alone, which also says how it was
run, so it can be made on another machine. `advice` is the page of an advice, and `browser` prints pages. The band of a
learning curve is from the lowest to the highest seed: quartiles of three or five seeds mean little.
"""
