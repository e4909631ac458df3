"""Made inputs: platforms and workloads from a seed, as facts of the model. Nothing here reads or writes files."""
