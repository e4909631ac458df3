"""What a run comes to: metrics, tables of Batsim's files, pictures."""
