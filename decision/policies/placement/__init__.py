"""Placement on trees of switches: what a set of hosts costs, and which free hosts cost a job least.

`tree` has the cost of Lan et al. in closed form and the best hosts for one job, `windows` the strategies by which
several jobs are placed together, `exact` the best window, by a dynamic program or, where that would be too large, by a
solver, and `search` the search for a good one, with how good one on any hosts can be at most. What is for any network
is elsewhere: how far apart two hosts are in `decision.state.cluster`, free hosts that are near one another in
`decision.policies.allocation`.

Design
------
Arrays in, arrays out, in kernels. A tree is the number of devices below each switch, from the hosts up, as
`decision.model.platform.FatTree` has it; a set of hosts is the number of its hosts on each lowest switch, from left to
right, because a cost depends on nothing else. So nothing here knows ids, jobs or time, and the same kernels serve a
policy, an experiment and a metric. Rejected: costs as sums over pairs of hosts, or from a matrix of all pairs, which
16,384 hosts would make 1 GB long.
"""
