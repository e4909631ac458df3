"""Checks of platform files for common mistakes: each finding gives the line, the element, the problem and the fix.

Design
------
SimGrid stops at the first mistake, or accepts it and computes wrong results: a bandwidth in bits, power under a name
that it no longer reads, a host without a route. Here all mistakes are found at once, on the elements of the XML,
because a file with mistakes cannot become a platform. `structure` is the file as the checks see it (zones, links,
findings), and `checks` looks at speeds, units and power, at zones, routes and reachability. An error of `load_platform`
is one more finding, unless its element has one already. The rules about elements, routes and gateways are those of
SimGrid 3.32's DTD and routing; its own example platforms have no findings except where they leave routes out on
purpose.

Rejected: validating against SimGrid's DTD, which finds neither wrong units nor missing routes, and whose messages do
not say what to do.
"""

from .checks import check_platform
from .structure import Finding, grouped

__all__ = ["Finding", "check_platform", "grouped"]
