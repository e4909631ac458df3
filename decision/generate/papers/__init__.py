"""The workloads of five papers on learned scheduling, generated again as far as they are published.

`predicted_runtimes` (Takizawa, Nomura and Matsuba), `grid5000_days` (DeepScheduling), `uniform` (Launchpad; neural
simulated annealing); the fifth, Deep Back-Filling, uses logs and `decision.generate.lublin`.

Design
------
The papers give figures, not files. What is published is met exactly where that is possible at all, by calibrating
one parameter with the random numbers held fixed, not by drawing until it fits: the same seed gives the same jobs, and
every seed meets the figures. What is not published is chosen and named in each module's docstring.
"""
