"""The messages of Batsim 5: `codec` turns bytes into messages and back, and holds the handshake.

Messages are JSON, or FlatBuffers where a decision process asks for it (`flatbuffers`). `read` makes our events of
Batsim 5's objects, `write` makes its objects of our events, and both share `wire_objects`.
"""
