"""A platform file looked over for what bites users of Batsim: each finding names the line, the element and the mend.

Design
------
SimGrid stops at the first mistake, or accepts it and computes nonsense: a bandwidth in bits, power under a name that it
no longer reads, a host without route. Here all mistakes are found at once, on the elements of the XML, because a file
with mistakes makes no `Platform`. What `load_platform` refuses is one finding more, unless its element has one already.
The rules about elements, routes and gateways are those of SimGrid 3.32's DTD and routing; its own example platforms
have no findings but where they leave routes out on purpose.
"""

from .checks import check_platform
from .finding import Finding, grouped

__all__ = ["Finding", "check_platform", "grouped"]
