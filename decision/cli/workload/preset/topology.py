"""``decision workload preset topology``: jobs for a fat-tree of 1,000 nodes."""

from ..making import EstimatesOption, JobsOption, OutputOption, SeedOption, write_made


def topology(
    output: OutputOption,
    jobs: JobsOption = 100_000,
    seed: SeedOption = 0,
    estimates: EstimatesOption = "exact",
) -> None:
    """Make the workload of topology-aware allocation by neural simulated annealing.

    Jobs of 1 to 40 nodes and 10 to 1,800 s, 5 to 30 s apart, all uniform, for a
    pruned fat-tree of 1,000 nodes.

    Examples:

      decision workload preset topology -o topology.json
    """
    import numpy as np

    from decision.estimates import apply_estimates
    from decision.generate.papers.topology import topology_workload

    rng = np.random.default_rng(seed)
    made = apply_estimates(topology_workload(rng, jobs), estimates, rng)
    origin = "After Optimization of Topology-Aware Job Allocation by Neural Simulated Annealing: uniform jobs."
    write_made(output, made, origin, f"preset topology --jobs {jobs} --seed {seed} --estimates {estimates}")
