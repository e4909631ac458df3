"""Write a policy in Python, check that it keeps the rules, and compare it with EASY backfilling."""

import decision as d


class SmallestFirst:
    """The jobs on the fewest hosts first; whatever fits starts."""

    def reset(self, platform, seed):
        """A run begins."""

    def decide(self, cluster, plan):
        """Called whenever something has happened."""
        for job in sorted(cluster.queue, key=lambda job: (job.size, job.submit_time)):
            if job.size <= plan.nb_free:
                plan.start(job)


for policy in (SmallestFirst(), "easy"):
    result = d.simulate("taurus", "taurus_week", policy)
    print(f"{result.title}: mean wait {result.summary().wait:,.0f} s")

longest = result.jobs.assign(wait=result.jobs.start_time - result.jobs.submit_time).nlargest(3, "wait")
print("with EASY these waited longest:")
print(longest[["id", "size", "walltime", "wait"]].to_string(index=False))
