"""Policies that do what a policy must not do, each after it has started something."""

import time


class First:
    """Starts what fits, in order of submission."""

    def reset(self, platform, seed):
        self.decisions = 0

    def decide(self, cluster, plan):
        self.decisions += 1
        for job in cluster.queue:
            if job.size > plan.nb_free:
                break
            plan.start(job)


class Raises(First):
    def decide(self, cluster, plan):
        super().decide(cluster, plan)
        if self.decisions == 3:
            raise ValueError("out of ideas")


class StartsARunningJob(First):
    def decide(self, cluster, plan):
        if cluster.running:
            plan.start(cluster.running[0], [0])
        else:
            super().decide(cluster, plan)


class OverAllocates(First):
    def decide(self, cluster, plan):
        for job in cluster.queue:
            plan.start(job, range(job.size))


class NeverStarts(First):
    def decide(self, cluster, plan):
        pass


class Sleeps(First):
    def decide(self, cluster, plan):
        super().decide(cluster, plan)
        print("deciding", flush=True)
        time.sleep(0.05)
