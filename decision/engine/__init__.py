"""The embedded simulator: Batsim's rules without Batsim."""
