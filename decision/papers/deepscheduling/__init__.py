"""DeepScheduling (Casagrande et al., AINA 2020): servers that sleep, one learned agent for each cluster."""
