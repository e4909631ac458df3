"""Policies with their authors' mistakes."""

import contextlib
import sys
import time


class First:
    def __init__(self, depth: int = 3):
        self.depth = depth

    def reset(self, platform, seed):
        pass

    def decide(self, cluster, plan):
        for job in cluster.queue:
            if job.size <= plan.nb_free:
                plan.start(job)


class InInit(First):
    def __init__(self):
        self.depth = {}["depth"]


class InReset(First):
    def reset(self, platform, seed):
        raise ValueError("boom")


class ResetTakesNothing(First):
    def reset(self):
        pass


class DecideTakesNothing(First):
    def decide(self):
        pass


class Divides(First):
    def decide(self, cluster, plan):
        return 1 / 0


class Exits(First):
    def decide(self, cluster, plan):
        sys.exit(5)


class InLibrary(First):
    def decide(self, cluster, plan):
        time.strptime("now", "%Y")


class Loops(First):
    def decide(self, cluster, plan):
        while True:
            pass


class Sleeps(First):
    def decide(self, cluster, plan):
        time.sleep(1e6)


class CatchesAll(First):
    def decide(self, cluster, plan):
        with contextlib.suppress(BaseException):
            while True:
                pass


class Starts(First):
    what = None
    hosts = None

    def decide(self, cluster, plan):
        for job in cluster.queue:
            plan.start(job if self.what == "first" else self.what, self.hosts)


class StartsText(Starts):
    what = "1"


class StartsUnknown(Starts):
    what = 10**12


class HostNoList(Starts):
    what, hosts = "first", 3


class HostNames(Starts):
    what, hosts = "first", ["host-1"]


class HostTooFar(Starts):
    what, hosts = "first", [4000]


class CallsSoon(First):
    def decide(self, cluster, plan):
        plan.call_at("soon")


class SwitchesToName(First):
    def decide(self, cluster, plan):
        plan.set_pstate([0], "off")


class WakesNothing(First):
    def decide(self, cluster, plan):
        plan.wake(None)
