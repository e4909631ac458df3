"""Forecasts of starts, judged as forecasts are: on recordings of a real Slurm, on logs, and on simulated ones."""
