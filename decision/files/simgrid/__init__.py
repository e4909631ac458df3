"""SimGrid's platform files: `read_platform` and `write_platform`, with the `routes` of Batsim's own messages.

Both sides share `values`: the tree of XML that is read, and how a speed, a wattage or a topology is written in it.
"""
