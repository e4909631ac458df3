"""Loads a platform in the real SimGrid and says what it finds; run by a Python that has SimGrid's bindings.

Reads a JSON object from stdin: the platform's path, whether to simulate energy, pairs of hosts whose routes are wanted,
and parallel tasks (hosts, flops of each, bytes between each two) to run one after the other. Writes one to stdout.
"""

import ctypes
import json
import sys
import time

import simgrid
from simgrid import Actor, Engine, this_actor


def main():
    wanted = json.load(sys.stdin)
    engine = Engine(["probe", "--log=root.threshold:error", "--cfg=host/model:ptask_L07"])  # as Batsim
    plugin = Energy() if wanted["energy"] else None
    begin = time.perf_counter()
    engine.load_platform(wanted["platform"])
    loading = time.perf_counter() - begin
    hosts = {host.name: host for host in engine.all_hosts}
    found = {
        "version": simgrid.simgrid_version,
        "loading": loading,
        "hosts": {name: describe(host, plugin) for name, host in hosts.items()},
    }

    def simulation():
        found["routes"] = [route(hosts[a], hosts[b]) for a, b in wanted["pairs"]]
        found["tasks"] = [run([hosts[name] for name in names], *amounts, plugin) for names, *amounts in wanted["tasks"]]

    Actor.create("simulation", hosts[wanted["master"]], simulation)  # some zones have no routes before it begins
    engine.run()
    json.dump(found, sys.stdout)


def describe(host, plugin):
    """Speeds and watts of all pstates."""
    pstates = range(host.pstate_count)
    speeds = [host.pstate_speed(pstate) for pstate in pstates]
    watts = [plugin.watts(host, pstate) for pstate in pstates] if plugin else []
    return {"speeds": speeds, "watts": watts, "pstate": host.pstate}


def route(a, b):
    links, latency = a.route_to(b)
    return {"links": len(links), "latency": latency}


def run(hosts, flops, communications, plugin):
    """Run a parallel task: what it takes in seconds, and its hosts in joules."""
    joules, begin = (plugin.joules(hosts) if plugin else 0.0), Engine.clock
    this_actor.parallel_execute(hosts, flops, communications)
    return {"seconds": Engine.clock - begin, "joules": plugin.joules(hosts) - joules if plugin else 0.0}


class Energy:
    """SimGrid's energy plugin, of which the bindings of Python know nothing."""

    def __init__(self):
        self.library = ctypes.CDLL("libsimgrid.so." + ".".join(simgrid.simgrid_version.split(".")[:2]))
        self.library.sg_host_by_name.restype = ctypes.c_void_p
        self.library.sg_host_by_name.argtypes = [ctypes.c_char_p]
        for name in ("sg_host_get_idle_consumption_at", "sg_host_get_wattmin_at", "sg_host_get_wattmax_at"):
            getattr(self.library, name).restype = ctypes.c_double
            getattr(self.library, name).argtypes = [ctypes.c_void_p, ctypes.c_int]
        self.library.sg_host_get_consumed_energy.restype = ctypes.c_double
        self.library.sg_host_get_consumed_energy.argtypes = [ctypes.c_void_p]
        self.library.sg_host_energy_plugin_init()

    def watts(self, host, pstate):
        """Idle, with the least load, and with the full load."""
        found = self.library.sg_host_by_name(host.name.encode())
        return [
            self.library.sg_host_get_idle_consumption_at(found, pstate),
            self.library.sg_host_get_wattmin_at(found, pstate),
            self.library.sg_host_get_wattmax_at(found, pstate),
        ]

    def joules(self, hosts):
        """What these hosts have consumed so far."""
        found = [self.library.sg_host_by_name(host.name.encode()) for host in hosts]
        return sum(self.library.sg_host_get_consumed_energy(host) for host in found)


if __name__ == "__main__":
    main()
