"""A signal that arrives as compiled code calls Python ends the run; raised where it arrives, it would be lost."""

import signal
import sys

import pytest
from helpers import failing_policies
from helpers.policy_toys import platform

from decision.batsim.signals import Interrupted, interrupted_by_sigterm
from decision.model.workload import Delay, Job, Workload
from decision.simulation import simulate_workloads


def test_an_interruption_at_the_begin_of_a_callback_ends_the_run():
    jobs = [Job(id=f"w0!{i}", submit_time=float(i), size=1, walltime=30.0, profile="p") for i in range(20)]
    workload = Workload(name="w0", jobs=jobs, profiles={"p": Delay(duration=20.0)}, nb_res=4)
    called = []

    def interrupting(frame, event, _):
        if event == "call" and frame.f_code.co_name == "answer":
            sys.setprofile(None)
            called.append(frame.f_globals["__name__"])
            signal.raise_signal(signal.SIGTERM)

    simulate_workloads(platform(4), [workload], failing_policies.First())  # compiles
    with interrupted_by_sigterm(), pytest.raises(Interrupted):
        sys.setprofile(interrupting)
        try:
            simulate_workloads(platform(4), [workload], failing_policies.First())
        finally:
            sys.setprofile(None)
    assert called == ["decision.entry"]
