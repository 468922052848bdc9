"""What stands in the way of a job's pods. Until it is gone a condition says what, and what to do."""

from dataclasses import dataclass
from enum import Enum, auto

from paddle_operator.api.names import (
    CONFIG_MAP_TAKEN,
    HOST_PORTS,
    INVALID_SPEC,
    NAMESAKE_TERMINATING,
    NO_IPV4,
    NOT_SERVED,
    PORTS_TAKEN,
    REFUSED,
    SHARED_ADDRESS,
)
from paddle_operator.api.resources import CONFIG_MAPS, PADDLE_JOBS, PODS
from paddle_operator.api.validate import not_served, spec_problems
from paddle_operator.plan import Refusal

from . import ports
from .observed import Observed


class End(Enum):
    """How an obstacle comes to its end, and what is done until then."""

    BY_EDIT = auto()
    """The user changes the spec, which we see. Nothing is created."""
    BY_ITSELF = auto()
    """An object goes away or gets another address; not all of that is shown to us. Nothing is created."""
    BY_TRYING = auto()
    """Only trying again tells."""


@dataclass(frozen=True)
class Obstacle:
    reason: str
    message: str
    end: End

    @property
    def stops_creation(self) -> bool:
        return self.end is not End.BY_TRYING


def find_obstacle(seen: Observed) -> Obstacle | None:
    """The first that applies; the user's own mistakes come first."""
    checks = [_not_served, _refused]
    if not seen.peers_are_told:
        checks = [
            _not_served,
            _invalid,
            _left_by_namesake,
            _foreign_config_map,
            _ports_taken,
            _refused,
            _no_ipv4,
            _shared_address,
        ]
    return next((obstacle for check in checks if (obstacle := check(seen))), None)


def _not_served(seen: Observed) -> Obstacle | None:
    found = not_served(seen.job)
    return Obstacle(NOT_SERVED, "; ".join(map(str, found)), End.BY_EDIT) if found else None


def _invalid(seen: Observed) -> Obstacle | None:
    found = spec_problems(seen.job) if seen.missing or not seen.slots else ()
    return Obstacle(INVALID_SPEC, "; ".join(map(str, found)), End.BY_EDIT) if found else None


def _left_by_namesake(seen: Observed) -> Obstacle | None:
    if seen.own:
        return None
    left = [f"{type(one).__name__.lower()} {one.metadata.name}" for one in seen.namesakes]
    owner = seen.config_map.metadata.controller if seen.config_map is not None else None
    if owner is not None and _is_namesake(seen, owner.kind, owner.name) and owner.uid != seen.job.uid:
        left.append(f"config map {seen.job.metadata.name}")
    if not left:
        return None
    more = f" and {len(left) - 1} more" if len(left) > 1 else ""
    message = f"waiting for what an earlier job of this name left to be gone: {left[0]}{more}"
    return Obstacle(NAMESAKE_TERMINATING, message, End.BY_ITSELF)


def _is_namesake(seen: Observed, kind: str, name: str) -> bool:
    return kind == PADDLE_JOBS.kind and name == seen.job.metadata.name


def _foreign_config_map(seen: Observed) -> Obstacle | None:
    if seen.own or seen.config_map is None or seen.own_config_map is not None:
        return None
    return Obstacle(CONFIG_MAP_TAKEN, _taken("config map", seen.job.metadata.name), End.BY_ITSELF)


def _ports_taken(seen: Observed) -> Obstacle | None:
    if not ports.are_due(seen) or seen.free_host_port:
        return None
    message = (
        f"the job needs {ports.ports_needed(seen.job)} ports in a row on the host network, and other jobs "
        f"hold too many of {HOST_PORTS.start}-{HOST_PORTS.stop - 1}; wait for one of them to end, or use "
        "another intranet"
    )
    return Obstacle(PORTS_TAKEN, message, End.BY_ITSELF)


def _refused(seen: Observed) -> Obstacle | None:
    refusals = [one for one in seen.refusals if _is_wanted(seen, one)]
    if not refusals:
        return None
    # By name, so that the message does not change with the order of the answers.
    refusal = min(refusals, key=lambda refusal: refusal.name)
    kind = {"ConfigMap": "config map"}.get(refusal.resource.kind, refusal.resource.kind.lower())
    if not refusal.taken:
        return Obstacle(REFUSED, f"{kind} {refusal.name}: {refusal.message}", End.BY_TRYING)
    reason = CONFIG_MAP_TAKEN if kind == "config map" else REFUSED
    return Obstacle(reason, _taken(kind, refusal.name), End.BY_TRYING)


def _is_wanted(seen: Observed, refusal: Refusal) -> bool:
    """Still: another manager may have made it since."""
    if refusal.resource == PODS:
        return refusal.name in seen.missing
    if refusal.resource == CONFIG_MAPS:
        return seen.config_map_is_due
    return all(one.metadata.name != refusal.name for one in seen.own_services)


def _taken(kind: str, name: str) -> str:
    return (
        f"{kind} {name} exists and does not belong to this job; the operator does not take it over: "
        "delete or rename it, or give the job another name"
    )


def _no_ipv4(seen: Observed) -> Obstacle | None:
    """Paddle's endpoints are IPv4 only; a job would wait for such a pod for ever."""
    ipv6 = [pod for name, pod in seen.own.items() if pod.status.pod_ip and not seen.addresses[name]]
    pod = next(iter(ipv6), None)
    if pod is None:
        return None
    message = (
        f"pod {pod.metadata.name} has only the IPv6 address {pod.status.pod_ip}, and Paddle needs IPv4: "
        "run the job on an IPv4 or dual-stack cluster"
    )
    return Obstacle(NO_IPV4, message, End.BY_ITSELF)


def _shared_address(seen: Observed) -> Obstacle | None:
    """Pods on the host network of one node. Paddle counts addresses: it would train two jobs, each alone."""
    if seen.job.on_host_network or seen.job.found_by_name:
        return None  # told in another way
    holders: dict[str, str] = {}
    for name, address in seen.addresses.items():
        if address and (other := holders.setdefault(address, name)) != name:
            message = (
                f"pods {other} and {name} share the address {address}, so Paddle would take them for one: "
                "remove hostNetwork from the template and write intranet: Host"
            )
            return Obstacle(SHARED_ADDRESS, message, End.BY_ITSELF)
    return None
