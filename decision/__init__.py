"""An external decision process for Batsim: heuristics and learned policies, one engine, one state.

Batsim (https://github.com/oar-team/batsim) simulates clusters on SimGrid and asks an external process
what to run where. This package is such a process, and it also carries an embedded engine with Batsim's
rules, so that the same policies run where nothing but Python is installed.

::

    import decision as d

    result = d.simulate("taurus", "taurus_week", "easy")
    print(result.summary())
    result.jobs  # a pandas DataFrame
    result.plot("schedule.png")

Design
------
One state, one writer, many event sources: the cluster is a struct of arrays (`decision.state`), only
`decision.state.transitions` changes it, and Batsim's messages, the embedded engine's clock and a training
step all go through the same transitions. Imports point one way (see `.importlinter`), so that a heuristic
run never loads torch and nothing below `decision.batsim` opens a socket.

The names below are loaded when they are first used (PEP 562): importing this package takes milliseconds and loads
neither numpy nor numba. Type checkers read them from ``__init__.pyi``. Rejected: imports under ``TYPE_CHECKING`` here,
from which the cache of compiled kernels would conclude that every module depends on every other.
"""

from importlib import import_module

__version__ = "0.2.0"

_HOMES = {
    "ClusterView": "state.view",
    "ComparisonResult": "api",
    "ConfigError": "model.errors",
    "DecisionError": "model.errors",
    "Environment": "rl.schedulers",
    "JobView": "state.view",
    "Plan": "policies",
    "Policy": "policies",
    "PolicyError": "model.errors",
    "Simulation": "api",
    "SimulationResult": "api",
    "advise": "api",
    "check_policy": "api",
    "compare": "api",
    "evaluate": "api",
    "find_policy": "policies",
    "gates": "api",
    "intervals": "api",
    "list_policies": "policies",
    "load_platform": "files",
    "load_workload": "files",
    "make_env": "api",
    "policy_from": "api",
    "read_run": "api",
    "search": "api",
    "shipped_platforms": "model.computer",
    "shipped_workloads": "model.computer",
    "simulate": "api",
    "starts": "api",
    "train": "api",
}
__all__ = ["__version__", *_HOMES]


class _Launched:
    """Makes the scheduler that pybatsim's launcher asks for (`decision.pybatsim`)."""

    def __call__(self, options: object) -> object:
        return import_module(f"{__name__}.pybatsim").Policy(options)


Decision = _Launched()  # of decision.pybatsim:Policy, pybatsim reads what is before the first dot, and capitalises it


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
