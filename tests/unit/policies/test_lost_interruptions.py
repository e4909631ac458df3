"""A signal that arrives as compiled code calls Python is raised by the callback: where it arrives it would be lost."""

import sys

import pytest
from helpers import failing_policies
from helpers.policy_toys import platform

from decision.model.errors import interrupt, raise_interruption
from decision.model.workload import Delay, Job, Workload
from decision.simulation import simulate_workloads


def interrupted_in(name: str, module: str) -> None:
    """A signal's handler is called with the frame of a function of this name."""
    space = {"__name__": module, "interrupt": interrupt, "sys": sys}
    exec(f"def {name}():\n    interrupt(KeyboardInterrupt(), sys._getframe())", space)
    space[name]()


def test_an_interruption_at_the_begin_of_a_callback_ends_the_run():
    interrupted_in("answer", "decision.compiling.entry")
    jobs = [Job(id="w0!0", submit_time=0.0, size=1, walltime=30.0, profile="p")]
    workload = Workload(name="w0", jobs=jobs, profiles={"p": Delay(duration=20.0)}, nb_res=4)
    with pytest.raises(KeyboardInterrupt):
        simulate_workloads(platform(4), [workload], failing_policies.First())
    raise_interruption()  # none is left


@pytest.mark.parametrize(("name", "module"), [("address", "decision.compiling.entry"), ("answer", "decision.other")])
def test_elsewhere_it_is_raised_at_once(name, module):
    with pytest.raises(KeyboardInterrupt):
        interrupted_in(name, module)
