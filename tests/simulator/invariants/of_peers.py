"""What must hold of how pods of a job find each other: order, endpoints, services, ports; after every change.

Numbers: rules.py.
"""

from itertools import pairwise
from typing import NamedTuple

from paddle_operator.api.meta import Key, Manifest
from paddle_operator.api.names import pod_name
from paddle_operator.api.resources import CONFIG_MAPS, PADDLE_JOBS, PODS, SERVICES, AnyResource
from simulator.history import (
    FINAL,
    NAMESPACE,
    PORTS_OF_A_POD,
    Objects,
    gives_way,
    intranet_of,
    owner_of,
    slots_of,
    trains,
    variables_of,
)
from simulator.kubelet import NODE_ADDRESS
from simulator.witness import Change

PORT = 2379


class Place(NamedTuple):
    """Where a slot of a job is found: what its peers have to be told."""

    host: str | None
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def servers_are_made_before_workers(change: Change) -> bool:
    """9: all pods of servers are there before the first pod of a worker is made."""
    pod, job = _born(change, PODS)
    if job is None or variables_of(pod)["TRAINING_ROLE"] != "TRAINER":
        return True
    servers = [_child(change.objects, job, PODS, role, rank) for role, rank in slots_of(job) if role == "ps"]
    return all(server is not None for server in servers)


def what_names_lead_to_stands_before_the_pod(change: Change) -> bool:
    """8: in Service mode the config map and a pod's own service are there before the pod is made."""
    pod, job = _born(change, PODS)
    if job is None or intranet_of(job) != "Service":
        return True
    service = change.objects.get((SERVICES, Key(NAMESPACE, pod["metadata"]["name"])))
    config_map = change.objects.get((CONFIG_MAPS, Key(NAMESPACE, job["metadata"]["name"])))
    return all(one is not None and owner_of(one) == owner_of(pod) for one in (service, config_map))


def peers_are_told_every_endpoint_in_the_order_of_ranks(change: Change) -> bool:
    """8: the list of endpoints has that of each rank 0..n-1 of each role, once, and never changes."""
    before, after = change.entry.before, change.entry.after
    if change.entry.resource == CONFIG_MAPS and before is not None and after is not None:
        return bool(before["data"] == after["data"])
    config_map, job = _born(change, CONFIG_MAPS)
    if job is None:
        return True
    places = _places(change.objects, job)
    workers, servers = places["worker"], places["ps"]
    listed = ",".join(map(str, workers))
    expected = {
        "PADDLE_TRAINERS": ",".join(str(worker.host) for worker in workers),
        "PADDLE_TRAINERS_NUM": str(len(workers)),
    }
    if servers:
        gloo = Place(servers[0].host, servers[0].port + 18)
        expected |= {
            "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(map(str, servers)),
            "PADDLE_GLOO_HTTP_ENDPOINT": str(gloo),
            "PADDLE_TRAINER_ENDPOINTS": listed,
        }
    else:
        first, count = workers[0], str(len(workers))
        expected |= {
            "PADDLE_MASTER": str(first),
            "PADDLE_NNODES": count,
            "MASTER_ADDR": str(first.host),
            "MASTER_PORT": str(first.port + 18),
            "NNODES": count,
            "TRAINER_IP_LIST": expected["PADDLE_TRAINERS"],
            "PADDLE_TRAINER_ENDPOINTS": listed,
        }
        # The launcher counts hosts: workers that share a node would be one.
        counted = config_map["data"].get("DISTRIBUTED_TRAINER_ENDPOINTS", listed).split(",")
        if len({one.partition(":")[0] for one in counted}) < len(workers) or counted[0] != str(first):
            return False
    if not _on_host(job):
        expected["PADDLE_PORT"] = str(PORT)
    return bool(expected.items() <= config_map["data"].items())


def host_ports_are_written_once(change: Change) -> bool:
    """8: the ports of a job on the host network stay what they are, as its pods do.

    But a suspension, also one that nobody saw, gives them back; and so does a job that cannot begin because
    an older one was given the same.
    """
    before, after = change.entry.before, change.entry.after
    if change.entry.resource != PADDLE_JOBS or before is None or after is None:
        return True
    written = before.get("status", {}).get("hostPort")
    now = after["status"].get("hostPort")
    if written in {None, now}:
        return True
    is_resumed = after["status"].get("resumeTime") != before["status"].get("resumeTime")
    is_over = is_resumed or after["status"]["phase"] == "Suspended"
    return now is None and (is_over or gives_way(change.entry, change.objects))


def a_pod_on_the_host_network_keeps_to_its_own_ports(change: Change) -> bool:
    """8: it is told the block of its slot, which its job had written down before; it declares all of it."""
    pod, job = _born(change, PODS)
    if job is None or not _on_host(job):
        return True
    if not job["status"].get("hostPort"):
        return False
    names = [pod_name(job["metadata"]["name"], role, rank) for role, rank in slots_of(job)]
    if pod["metadata"]["name"] not in names:
        return False
    port = int(variables_of(pod)["PADDLE_PORT"])
    own = names.index(pod["metadata"]["name"])
    declared = [one.get("hostPort") for one in pod["spec"]["containers"][0].get("ports", ())]
    block = range(port, port + PORTS_OF_A_POD)
    return port == job["status"]["hostPort"] + PORTS_OF_A_POD * own and declared == [*block]


def live_jobs_share_no_host_ports(change: Change) -> bool:
    """8: blocks of live jobs on the host network do not overlap."""
    if change.entry.resource != PADDLE_JOBS:
        return True
    blocks = sorted(
        (job["status"]["hostPort"], job["status"]["hostPort"] + PORTS_OF_A_POD * len(slots_of(job)))
        for (kind, _), job in change.objects.items()
        if kind == PADDLE_JOBS
        and job.get("status", {}).get("hostPort")
        and job["status"].get("phase") not in FINAL
    )
    return all(end <= start for (_, end), (start, _) in pairwise(blocks))


OF_PEERS = (
    servers_are_made_before_workers,
    what_names_lead_to_stands_before_the_pod,
    peers_are_told_every_endpoint_in_the_order_of_ranks,
    host_ports_are_written_once,
    a_pod_on_the_host_network_keeps_to_its_own_ports,
    live_jobs_share_no_host_ports,
)


def _born(change: Change, resource: AnyResource) -> tuple[Manifest, Manifest | None]:
    """A child that we make by this change, and its job. No job: not our affair, or too late for it.

    Too late is also a job that has ended or is suspended: what is made for it never trains, and goes.
    """
    child = change.entry.after
    if change.request is None:
        return {}, None
    if change.entry.resource != resource or change.entry.before is not None or child is None:
        return {}, None
    if resource == PODS and not trains(child):
        return {}, None
    jobs = (one for (kind, _), one in change.objects.items() if kind == PADDLE_JOBS)
    job = next((job for job in jobs if job["metadata"]["uid"] == owner_of(child)), None)
    is_over = job is not None and job.get("status", {}).get("phase") in {*FINAL, "Suspended"}
    return child, None if is_over else job


def _child(objects: Objects, job: Manifest, kind: AnyResource, role: str, rank: int) -> Manifest | None:
    found = objects.get((kind, Key(NAMESPACE, pod_name(job["metadata"]["name"], role, rank))))
    return found if found is not None and owner_of(found) == job["metadata"]["uid"] else None


def _on_host(job: Manifest) -> bool:
    return intranet_of(job).startswith("Host")


def _places(objects: Objects, job: Manifest) -> dict[str, list[Place]]:
    """By role. A pod that has no address yet has no place that anybody could be told."""
    places: dict[str, list[Place]] = {"ps": [], "worker": []}
    for index, (role, rank) in enumerate(slots_of(job)):
        name = pod_name(job["metadata"]["name"], role, rank)
        pod = _child(objects, job, PODS, role, rank)
        address = pod["status"].get("podIP") if pod is not None else None
        if intranet_of(job) == "Service":
            # Servers are known by the name that their own hosts file has.
            address = name if "ps" in job["spec"] else f"{name}.{NAMESPACE}.svc"
        if _on_host(job) and address == NODE_ADDRESS:
            places[role].append(Place(address, job["status"].get("hostPort", 0) + PORTS_OF_A_POD * index))
        else:
            places[role].append(Place(address, PORT))
    return places
