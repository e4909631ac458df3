"""The reference engine: Batsim's rules in plain Python, actor by actor, to be read (`engine` begins)."""
