"""What compiled code stands on: kernels and how they are compiled, arrays that they share, calls by address.

Design
------
`jit.kernel` marks a function that numba compiles, and `whole_program` links and compiles the few roots that Python
calls. A `bundle.Bundle` is a record of arrays whose address a kernel takes; an `entry.Entry` is a kernel that others
call by its address, so that what a run does not ask for is not compiled. `small_kernels` are what kernels use in
the place of Python's random numbers and sorted lists.
"""
