"""The scheduler itself, compiled: main loop, backfill, priorities, choice of nodes.

Time is in whole seconds, as in Slurm. Everything lies in one `SlurmWorld`; `clock` moves it from event to event.
"""
