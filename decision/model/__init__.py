"""Frozen facts: jobs, profiles, workloads, platforms, power states, host sets, and the package's errors.

Nothing here knows a file format, a protocol or a clock; everything else imports it.
"""
