"""Launchpad (Venkataswamy et al., JSSPP 2024): a green datacenter, learned from heuristics' choices and online."""
