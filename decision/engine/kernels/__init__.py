"""Batsim's rules on arrays, compiled: `server.advance` is the loop, and `rounds` explains the order of things."""
