"""When things were seen to happen: the times of one measurement, told by watch events. No I/O."""

import statistics
from collections import Counter
from collections.abc import Mapping

from msgspec import Struct

from paddle_operator.api.paddlejob import Role
from testbed.node_pods import KubeObject, Meta

ENDED = frozenset({"Succeeded", "Failed"})
# Of our operator and of the Go one; Kubeflow's says it by a condition.
COMPLETED, SUCCEEDED = "Completed", "Succeeded"


class Owner(Struct, frozen=True):
    name: str


class OwnedMeta(Meta, frozen=True):
    owner_references: tuple[Owner, ...] = ()


class Condition(Struct, frozen=True):
    type: str
    status: str


class Status(Struct, frozen=True):
    phase: str = ""
    # Null in the object that a bookmark carries.
    conditions: list[Condition] | None = None


class Thing(KubeObject, frozen=True):
    """A job, a pod or a service, as far as it matters here."""

    metadata: OwnedMeta
    status: Status = Status()

    @property
    def job(self) -> str:
        owners = self.metadata.owner_references
        return owners[0].name if owners else ""

    @property
    def is_completed(self) -> bool:
        conditions = self.status.conditions or []
        return self.status.phase == COMPLETED or any(
            one.type == SUCCEEDED and one.status == "True" for one in conditions
        )


class Timeline:
    """Times are of one clock, whichever; each is the first at which something was seen."""

    def __init__(self, pods_per_job: int, jobs: int, *, cleans: bool, only_creates: bool = False) -> None:
        self._pods_per_job = pods_per_job
        self._jobs = jobs
        self._cleans = cleans
        self._only_creates = only_creates
        self.sent: dict[str, float] = {}
        self.created: dict[str, float] = {}
        self.services: dict[str, float] = {}
        self.running: dict[str, float] = {}
        self.ended: dict[str, float] = {}
        self.gone: dict[str, float] = {}
        self.services_gone: dict[str, float] = {}
        self.completed: dict[str, float] = {}
        self.most_pods = 0
        """So many were there at once."""
        self._job_of: dict[str, str] = {}
        self._made: dict[str, str] = {}
        self._alive: set[str] = set()

    def saw_pod(self, change: str, pod: Thing, now: float) -> None:
        if pod.job not in self.sent:
            return
        name, uid = pod.metadata.name, pod.metadata.uid
        self._job_of[name] = self._made[uid] = pod.job
        self.created.setdefault(name, now)
        if pod.status.phase == "Running" or pod.status.phase in ENDED:
            self.running.setdefault(name, now)
        if pod.status.phase in ENDED:
            self.ended.setdefault(name, now)
        if change == "DELETED":
            self.gone.setdefault(name, now)
            self._alive.discard(uid)
        else:
            self._alive.add(uid)
            self.most_pods = max(self.most_pods, len(self._alive))

    def saw_service(self, change: str, service: Thing, now: float) -> None:
        if not service.job:
            return
        self.services.setdefault(service.metadata.name, now)
        if change == "DELETED":
            self.services_gone.setdefault(service.metadata.name, now)

    def saw_job(self, _change: str, job: Thing, now: float) -> None:
        if job.is_completed:
            self.completed.setdefault(job.metadata.name, now)

    @property
    def has_begun(self) -> bool:
        return bool(self.created)

    @property
    def is_over(self) -> bool:
        if self._only_creates:
            return len(self.created) >= self._jobs * self._pods_per_job
        if len(self.completed) < self._jobs:
            return False
        # Whatever is gone was there before.
        is_clean = len(self.gone) == len(self.created) and len(self.services_gone) == len(self.services)
        return is_clean or not self._cleans

    @property
    def progress(self) -> str:
        seen = {
            "created": self.created,
            "Running": self.running,
            "ended": self.ended,
            "gone": self.gone,
        }
        pods = self._jobs * self._pods_per_job
        told = ", ".join(f"{len(times)} {what}" for what, times in seen.items())
        return f"of {pods} pods {told}; of {self._jobs} jobs {len(self.completed)} completed"

    def times(self) -> dict[str, float]:
        """Seconds since the first job was sent, or, where it is said, since something else."""
        began = min(self.sent.values())
        created = self._since_sent(self.created).values()
        found = {
            "created": max(self.created.values()) - began,
            "job_created_median": statistics.median(created),
            "job_created_worst": max(created),
        }
        if self.services:
            found["services"] = max(self.services.values()) - began
        if not self._only_creates:
            found |= self._times_of_the_end(began)
        return {name: round(seconds, 4) for name, seconds in found.items()}

    def _times_of_the_end(self, began: float) -> dict[str, float]:
        ends = self._ends()
        last_end = max(ends.values())
        running = self._since_sent(self.running).values()
        found = {
            "running": max(self.running.values()) - began,
            "ended": last_end - began,
            "completed": max(self.completed.values()) - began,
            "completed_lag": max(self._lags(ends).values()),
            "job_running_median": statistics.median(running),
            "job_running_worst": max(running),
        }
        if self._cleans:
            cleaned = max([*self.gone.values(), *self.services_gone.values()])
            found |= {"cleaned": cleaned - began, "cleaned_after_end": cleaned - last_end}
        return found

    def extra_pods(self) -> int:
        """Beyond those that were asked for: an operator may make a pod twice."""
        made = Counter(self._made.values())
        return sum(max(0, count - self._pods_per_job) for count in made.values())

    def _ends(self) -> dict[str, float]:
        """Of the pods that end by themselves: parameter servers are stopped when their job has ended."""
        return {pod: at for pod, at in self.ended.items() if _role(pod) != Role.PS}

    def _lags(self, ends: Mapping[str, float]) -> dict[str, float]:
        """Of each job, from the end of its last pod until it said that it is completed.

        Each kind has a watch of its own: of two things within a moment the second may be seen first.
        """
        last = self._last_of_each_job(ends)
        return {job: max(0.0, self.completed[job] - at) for job, at in last.items() if job in self.completed}

    def _since_sent(self, times: Mapping[str, float]) -> dict[str, float]:
        return {job: at - self.sent[job] for job, at in self._last_of_each_job(times).items()}

    def _last_of_each_job(self, times: Mapping[str, float]) -> dict[str, float]:
        last: dict[str, float] = {}
        for pod, at in times.items():
            job = self._job_of[pod]
            last[job] = max(last.get(job, at), at)
        return last


def _role(pod: str) -> str:
    """All operators name a pod after its job, its role and its number."""
    return pod.rsplit("-", 2)[-2]
