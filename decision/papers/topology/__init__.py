"""Lan et al.: topology-aware allocation by neural simulated annealing, by their program's rules and by their text."""
