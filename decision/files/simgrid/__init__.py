"""SimGrid's platform files: `read_platform` and `write_platform`, with the `routes` of Batsim's own messages.

Both sides share `values`, how a speed, a wattage or a topology is written; `xml_tree` is what is read.
"""
