"""Benchmarks: what is measured, against which target, beside which peer. Run with scripts/bench."""
