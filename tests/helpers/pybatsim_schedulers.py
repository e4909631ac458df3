# ruff: noqa: N802 (pybatsim calls its methods so)
"""Schedulers for pybatsim 3.2.1, written as its users write them.

They decide what the scripted schedulers of the golden sessions decided: first fit over the lowest host ids.
"""

from itertools import islice

from batsim.batsim import BatsimScheduler
from procset import ProcSet


class FirstFit(BatsimScheduler):
    """Starts each queued job that fits, in queue order; with the option `fcfs` none overtakes."""

    def onSimulationBegins(self):
        self.free = ProcSet((0, self.bs.nb_compute_resources - 1))
        self.queue, self.ending = [], False

    def onJobSubmission(self, job):
        self.queue.append(job)

    def onJobCompletion(self, job):
        self.free |= job.allocation

    def onSimulationEnds(self):
        self.ending = True

    def onNoMoreEvents(self):
        if not self.ending:
            self.decide()

    def decide(self):
        for job in list(self.queue):
            if job.requested_resources > self.bs.nb_compute_resources:
                self.bs.reject_jobs([job])
            elif job.requested_resources <= len(self.free):
                self.start(job)
            elif self.options.get("fcfs"):
                break
            else:
                continue
            self.queue.remove(job)

    def start(self, job):
        job.allocation = ProcSet(*islice(self.free, job.requested_resources))
        self.free -= job.allocation
        self.bs.execute_job(job)


class Killer(FirstFit):
    """Asks to be called 40 s after each start and kills what still runs then."""

    def onSimulationBegins(self):
        super().onSimulationBegins()
        self.due = []

    def start(self, job):
        super().start(job)
        self.due.append((self.bs.time() + 40, job))
        self.bs.wake_me_up_at(self.bs.time() + 40)

    def decide(self):
        now = self.bs.time() + 1e-6
        late = [job for time, job in self.due if time <= now and job.finish_time is None]
        self.due = [(time, job) for time, job in self.due if time > now]
        if late:
            self.bs.kill_jobs(late)
        super().decide()

    def onRequestedCall(self):
        pass

    def onJobsKilled(self, jobs):
        self.last_progress = [job.progress["progress"] for job in jobs]


class Sleeper(FirstFit):
    """Lets hosts sleep that no queued job needs, wakes them on demand, and asks for the energy used."""

    def onSimulationBegins(self):
        super().onSimulationBegins()
        self.asleep, self.moving = ProcSet(), ProcSet()

    def onMachinePStateChanged(self, interval, pstate):
        hosts = ProcSet(interval)
        self.moving -= hosts
        if pstate == "0":
            self.free |= hosts
        else:
            self.asleep |= hosts

    def onJobCompletion(self, job):
        super().onJobCompletion(job)
        if self.bs.nb_jobs_completed % 5 == 0:
            self.bs.request_consumed_energy()

    def onReportEnergyConsumed(self, consumed_energy):
        self.joules = consumed_energy

    def decide(self):
        super().decide()
        if self.queue:
            missing = self.queue[0].requested_resources - len(self.free) - len(self.moving)
            self.wake(ProcSet(*islice(self.asleep, max(0, missing))))
        elif len(self.free) > 2:
            self.let_sleep(ProcSet(*islice(self.free, 2, None)))

    def wake(self, hosts):
        if hosts:
            self.asleep -= hosts
            self.moving |= hosts
            self.bs.set_resource_state(hosts, 0)

    def let_sleep(self, hosts):
        self.free -= hosts
        self.moving |= hosts
        self.bs.set_resource_state(hosts, 1)


class Resubmitter(FirstFit):
    """Registers a dynamic job after each job of the workload."""

    def onSimulationBegins(self):
        super().onSimulationBegins()
        self.registered, self.told = 0, False

    def onJobSubmission(self, job):
        super().onJobSubmission(job)
        if job.workload == "dyn":
            self.registered -= 1

    def onJobCompletion(self, job):
        super().onJobCompletion(job)
        if job.workload == "w0":
            name = job.id.split("!")[1]
            self.bs.register_profiles("dyn", {f"again_{name}": {"type": "delay", "delay": 7.5}})
            self.bs.register_job(f"dyn!{name}", 1, 60.0, f"again_{name}")
            self.registered += 1

    def decide(self):
        super().decide()
        static = [j for j in self.bs.jobs.values() if j.workload == "w0" and j.finish_time is None]
        if self.bs.no_more_static_jobs and not static and not self.registered and not self.told:
            self.told = True
            self.bs.notify_registration_finished()


class Evader(FirstFit):
    """Keeps clear of the machines that external events take away."""

    def onSimulationBegins(self):
        super().onSimulationBegins()
        self.down = ProcSet()

    def onNotifyEventMachineUnavailable(self, machines):
        self.down |= machines
        self.free -= self.down

    def onNotifyEventMachineAvailable(self, machines):
        self.down -= machines
        running = [job for job in self.bs.jobs.values() if job.allocation and job.finish_time is None]
        self.free |= machines - ProcSet().union(*(job.allocation for job in running))

    def onJobCompletion(self, job):
        super().onJobCompletion(job)
        self.free -= self.down


class Slow(FirstFit):
    """Takes a quarter of a second for its decisions and notes on each job how large it is."""

    def start(self, job):
        super().start(job)
        self.bs.set_job_metadata(job.id, f"alloc of {len(job.allocation)}")

    def decide(self):
        super().decide()
        self.bs.consume_time(0.25)
