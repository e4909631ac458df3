"""What this computer has: processors and memory, files packed or shipped.

`cores` counts the processors and the memory that this process may use, in containers and batch jobs too, and `room`
refuses what does not fit there. `unpacked` reads packed files, and `shipped` finds platforms and workloads by name.
`browser` prints pages to PDF.
"""
