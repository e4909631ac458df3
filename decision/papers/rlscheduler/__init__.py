"""RLScheduler (Zhang et al., SC 2020): its table of bounded slowdowns, by its simulator's rules and by usual ones."""
