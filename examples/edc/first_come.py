"""A decision component of Batsim 5: first come, first served, in one process and without this package.

Needs pyzmq. Start it, and then ``decision batsim5 -p taurus -w workload5.json -s tcp://localhost:28000 ''``.
"""

# --8<-- [start:process]
import json
import struct
import sys

import zmq


def hello() -> bytes:
    event = {
        "batprotocol_version": "1.0.0",
        "decision_component_name": "first come",
        "decision_component_version": "1",
        "decision_component_commit": "",
        "requested_simulation_features": {},
    }
    events = [{"timestamp": 0.0, "event_type": "EDCHelloEvent", "event": event}]
    return struct.pack("<I", 2) + json.dumps({"now": 0.0, "events": events}).encode() + b"\0"


def start(job_id: str, hosts: list[int]) -> dict:
    placement = {"strategy": "SpreadOverHostsFirst"}
    allocation = {
        "host_allocation": " ".join(map(str, hosts)),
        "executor_placement_type": "PredefinedExecutorPlacementStrategyWrapper",
        "executor_placement": placement,
    }
    return {"event_type": "ExecuteJobEvent", "event": {"job_id": job_id, "allocation": allocation}}


socket = zmq.Context().socket(zmq.REP)
socket.bind(sys.argv[1] if sys.argv[1:] else "tcp://127.0.0.1:28000")
size_and_text = socket.recv()
socket.send(hello())

free, waiting, running, over = set(), [], {}, False
while not over:
    question, replies = json.loads(socket.recv().rstrip(b"\0")), []
    for event in question["events"]:
        said = event["event"]
        match event["event_type"]:
            case "SimulationBeginsEvent":
                free = {host["id"] for host in said["computation_hosts"]}
            case "JobSubmittedEvent":
                waiting.append((said["job_id"], said["job"]["resource_request"]))
            case "JobCompletedEvent":
                free |= running.pop(said["job_id"])
            case "SimulationEndsEvent":
                over = True
    while waiting and waiting[0][1] <= len(free):
        job_id, size = waiting.pop(0)
        hosts = sorted(free)[:size]
        running[job_id] = set(hosts)
        free -= running[job_id]
        replies.append({"timestamp": question["now"], **start(job_id, hosts)})
    socket.send(json.dumps({"now": question["now"], "events": replies}).encode() + b"\0")
# --8<-- [end:process]
