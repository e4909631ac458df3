"""Policies: order x backfill x allocation x power, and everything that decides."""
