"""Why a job that could run does not run yet: what its scheduler, its kubelets and our own look say."""

from datetime import datetime, timedelta
from typing import NamedTuple

from paddle_operator.api.core import ContainerStatus, Pod
from paddle_operator.api.names import CONFIG_MAP_MISSING, SLOW_START

from .endpoints import Slot
from .ends import Meaning, meaning_of_waiting, table
from .observed import Observed

# So long a pod may be on its node before anybody wonders: images are large.
SLOW_AFTER = timedelta(seconds=60)
LONGEST_TEXT = 400


class Wait(NamedTuple):
    """One pod that waits, and for what. Of several the least one tells most."""

    rank: int
    slot: Slot
    name: str
    reason: str
    """One word for all of a kind: a kubelet says ErrImagePull and ImagePullBackOff in turn."""
    meaning: Meaning
    """With gaps, until it is told."""
    text: str
    container: str

    def told(self, seen: Observed) -> Meaning:
        image = seen.container_in_template(self.slot.role, self.container).get("image") or ""
        return self.meaning.told({"image": image, "pod": self.name, "container": self.container})


def find_wait(seen: Observed) -> tuple[str, str] | None:
    """The reason and the message for people; None if all that can be said is that pods start."""
    waits = _waits(seen)
    if not waits:
        return None
    first = min(waits, key=_telling)
    return first.reason, _in_words(seen, first, len(waits))


def worst_wait(seen: Observed) -> Wait | None:
    return min(_waits(seen), key=_telling, default=None)


def _telling(wait: Wait) -> tuple[int, Slot]:
    return wait.rank, wait.slot


def next_wonder(seen: Observed) -> datetime | None:
    """When a pod that its node has taken up will have been slow to start."""
    since = [pod.status.start_time for name, pod in seen.own.items() if name not in seen.started]
    times = [time + SLOW_AFTER for time in since if time is not None]
    return min((time for time in times if time > seen.now), default=None)


def is_slow(seen: Observed) -> bool:
    return any(_is_slow(pod, seen.now) for name, pod in seen.own.items() if name not in seen.started)


def mounted_config_maps(seen: Observed) -> tuple[str, ...]:
    """Those without which a pod stays ContainerCreating, and only an event of its kubelet says why."""
    names: dict[str, None] = {}
    for pod in seen.templates.values():
        for volume in pod.get("volumes") or ():
            found = volume.get("configMap") or {}
            if found.get("name") and not found.get("optional"):
                names[found["name"]] = None
    return tuple(names)


def _in_words(seen: Observed, first: Wait, count: int) -> str:
    others = f" ({count} pods wait)" if count > 1 else ""
    said = f": {first.text}" if first.text else ""
    who, meaning = f"{first.slot.role} {first.slot.rank} (pod {first.name})", first.told(seen)
    return f"{who} {meaning.means}{said}{others}; {meaning.next}"


def unstarted_in_words(seen: Observed) -> str:
    """Of pods of which nothing is known but that they have not begun."""
    late = [(name, pod) for name, pod in seen.own.items() if name not in seen.started]
    if not late:
        return "not all pods are there" if seen.missing else "not all are ready"
    name, pod = late[0]
    runs = [one.name for one in pod.status.init_container_statuses if one.state.running is not None]
    slot, doing = seen.slots[name], f"its init container {runs[0]} still runs" if runs else "it has not begun"
    return f"{slot.role} {slot.rank} (pod {name}): {doing} ({len(late)} of {len(seen.slots)} pods wait)"


def _waits(seen: Observed) -> list[Wait]:
    found = [_wait(seen, name, pod) for name, pod in seen.own.items() if name not in seen.started]
    return [wait for wait in found if wait is not None]


def _wait(seen: Observed, name: str, pod: Pod) -> Wait | None:
    if pod.metadata.terminating:
        return None
    scheduled = pod.condition("PodScheduled")
    if scheduled is not None and scheduled.status == "False":
        return _found(seen, name, scheduled.reason, scheduled.message)
    for container in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        if (wait := _container_wait(seen, name, container)) is not None:
            return wait
    if not _is_slow(pod, seen.now):
        return None
    if seen.missing_config_maps:
        return _found(seen, name, CONFIG_MAP_MISSING, ", ".join(seen.missing_config_maps))
    return _found(seen, name, SLOW_START, "")


def _container_wait(seen: Observed, name: str, container: ContainerStatus) -> Wait | None:
    state = container.state.waiting
    if state is None:
        return None
    own_map = f'configmap "{seen.job.metadata.name}" not found'
    if state.reason == "CreateContainerConfigError" and (not state.message or own_map in state.message):
        return None  # the list of peers is on its way
    return _found(seen, name, state.reason, state.message, container.name)


def _found(seen: Observed, name: str, reason: str, text: str, container: str = "") -> Wait | None:
    meaning = meaning_of_waiting(reason)
    if meaning is None:
        return None
    # Its first words tell only that it will try again.
    cause = " ".join(text.rpartition("ErrImagePull: ")[2].split())[:LONGEST_TEXT]
    rank = table().waiting.index(meaning)
    return Wait(rank, seen.slots[name], name, meaning.reasons[0], meaning, cause, container)


def _is_slow(pod: Pod, now: datetime) -> bool:
    since = pod.status.start_time
    return since is not None and since + SLOW_AFTER <= now
