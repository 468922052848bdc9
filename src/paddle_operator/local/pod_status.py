"""How a pod looks from outside: the status that a kubelet would write."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from paddle_operator.api.meta import Manifest


def stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class ContainerReport:
    name: str
    image: str
    state: dict[str, Any] = field(default_factory=lambda: waiting("PodInitializing"))
    last_state: dict[str, Any] = field(default_factory=dict)
    restarts: int = 0

    @property
    def is_running(self) -> bool:
        return "running" in self.state

    @property
    def has_ended(self) -> bool:
        return "terminated" in self.state

    @property
    def exit_code(self) -> int:
        code: int = self.state["terminated"]["exitCode"]
        return code

    def status(self) -> Manifest:
        return {
            "name": self.name,
            "image": self.image,
            "imageID": "",
            "ready": self.is_running,
            "started": self.is_running,
            "restartCount": self.restarts,
            "state": self.state,
            "lastState": self.last_state,
        }


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    return {"waiting": {"reason": reason, "message": message} if message else {"reason": reason}}


def running(since: datetime) -> dict[str, Any]:
    return {"running": {"startedAt": stamp(since)}}


def terminated(
    code: int, since: datetime, until: datetime, reason: str = "", message: str = ""
) -> dict[str, Any]:
    said = reason or ("Error" if code else "Completed")
    times = {"startedAt": stamp(since), "finishedAt": stamp(until)}
    return {
        "terminated": {
            "exitCode": code,
            "reason": said,
            **times,
            **({"message": message} if message else {}),
        }
    }


@dataclass
class PodReport:
    """The one mutable picture of a pod; every change of it is written to the API server."""

    address: str
    node_address: str
    started: datetime
    restarts_failures: bool
    initial: list[ContainerReport]
    main: list[ContainerReport]
    reason: str = ""
    """Why the pod as a whole failed, if it was not a container's doing."""

    @property
    def phase(self) -> str:
        if self.reason and not any(one.is_running for one in (*self.initial, *self.main)):
            return "Failed"
        if any(one.has_ended and one.exit_code and not self.restarts_failures for one in self.initial):
            return "Failed"
        if all(one.has_ended for one in self.main):
            failed = any(one.exit_code for one in self.main)
            # One that is started again has not failed; its pod is on the way to its next try.
            return "Running" if failed and self.restarts_failures else "Failed" if failed else "Succeeded"
        begun = any(one.has_ended or one.last_state or one.is_running for one in self.main)
        return "Running" if begun else "Pending"

    def status(self) -> Manifest:
        status: Manifest = {
            "phase": self.phase,
            "hostIP": self.node_address,
            "podIP": self.address,
            "podIPs": [{"ip": self.address}],
            "startTime": stamp(self.started),
            "containerStatuses": [one.status() for one in self.main],
        }
        if self.initial:
            status["initContainerStatuses"] = [one.status() for one in self.initial]
        return status | ({"reason": self.reason} if self.reason and self.phase == "Failed" else {})
