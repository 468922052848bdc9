"""Carries out a plan: the one place from which a change is sent to the cluster.

Guarantees: steps run in order, the actions of a step at once (32 in flight over all jobs); a step that
fails stops the rest; every delete and patch names the UID it is for; what we wrote is told to the cache gate.
What a failure means is not decided here: the outcome is handed back as a value.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass, field

import structlog

from paddle_operator.api.meta import Key
from paddle_operator.api.resources import Target
from paddle_operator.cluster import (
    AlreadyExists,
    ApiError,
    Cluster,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    Throttled,
)
from paddle_operator.plan import Action, Create, Delete, Emit, Patch, Plan, Refusal, SetStatus, Step

from .events import EventRecorder
from .gate import CacheGate

log = structlog.get_logger()

IN_FLIGHT = 32
TRIES_WHEN_THROTTLED = 5


@dataclass(frozen=True)
class Outcome:
    """How far a plan came: to the end, unless refusals, a newer version or an error stopped it."""

    wrote_status: bool = False
    refusals: tuple[Refusal, ...] = ()
    outdated: bool = False
    """Somebody else changed the object meanwhile: look again, nothing is wrong."""
    error: ApiError | None = None
    troubles: tuple[Refusal, ...] = field(default=(), compare=False)
    """The creates behind an error that may pass; if it does not, they are as good as refused."""
    failed_step: str = field(default="", compare=False)
    """What was being done, and how far it came: for the log."""
    failing: frozenset[str] = field(default=frozenset(), compare=False)
    """The kinds of actions that met a refusal or an error."""
    done: frozenset[str] = field(default=frozenset(), compare=False)
    """The kinds of actions of the steps that went through."""

    @property
    def complete(self) -> bool:
        return not self.refusals and not self.outdated and self.error is None


class Executor:
    """``places`` bounds what is in flight; executors of one cluster may share them."""

    def __init__(
        self,
        cluster: Cluster,
        gate: CacheGate,
        recorder: EventRecorder,
        places: asyncio.Semaphore | None = None,
    ) -> None:
        self._cluster = cluster
        self._gate = gate
        self._recorder = recorder
        self._places = places or asyncio.Semaphore(IN_FLIGHT)
        self._resume_at = 0.0

    async def execute(self, plan: Plan, owner_uid: str) -> Outcome:
        wrote_status = False
        done: frozenset[str] = frozenset()
        for step in plan.steps:
            run = _StepRun(step)
            # A group, so that no action outlives the turn that sent it, whatever another one raises. As many
            # hands as there are places, so that a large step leaves room in the line for other jobs.
            async with asyncio.TaskGroup() as tasks:
                for _ in step[:IN_FLIGHT]:
                    tasks.create_task(self._work_off(owner_uid, run))
            wrote_status = wrote_status or run.wrote_status
            if run.failed:
                return run.outcome(wrote_status=wrote_status, done=done)
            done |= {_kind(action) for action in step}
            _report(step)
        return Outcome(wrote_status, done=done)

    async def _work_off(self, owner_uid: str, run: "_StepRun") -> None:
        for action in run.actions:
            await self._attempt(action, owner_uid, run)
            if run.failed:
                return

    async def _attempt(self, action: Action, owner_uid: str, run: "_StepRun") -> None:
        """One action, with patience for a server that asks for it. Not begun once another has failed."""
        for last in (False,) * (TRIES_WHEN_THROTTLED - 1) + (True,):
            async with self._places:
                # With a place in hand: a pause may have been asked for while we waited for one.
                await self._wait_if_throttled()
                if run.failed:
                    return
                try:
                    refusal = await self._send(action, owner_uid)
                except Throttled as error:
                    resume_at = asyncio.get_running_loop().time() + error.retry_after_seconds
                    self._resume_at = max(self._resume_at, resume_at)
                    if last:
                        run.met(action, error)
                    continue
                except ApiError as error:
                    run.met(action, error)
                    if isinstance(action, Create):
                        run.troubles.append(_refusal(action, error))
                    return
            run.sent += 1
            run.wrote_status = run.wrote_status or isinstance(action, SetStatus)
            if refusal is not None:
                run.refusals.append(refusal)
                run.failing.add(_kind(action))
            return

    async def _wait_if_throttled(self) -> None:
        clock = asyncio.get_running_loop().time
        while (pause := self._resume_at - clock()) > 0:  # noqa: ASYNC110 (it may have grown meanwhile)
            await asyncio.sleep(pause)

    async def _send(self, action: Action, owner_uid: str) -> Refusal | None:
        match action:
            case Create():
                return await self._create(action, owner_uid)
            case Patch():
                await self._patch(action, owner_uid)
            case Delete():
                await self._delete(action, owner_uid)
            case SetStatus():
                await self._set_status(action, owner_uid)
            case Emit():
                await self._recorder.post(action)
        return None

    async def _create(self, action: Create, owner_uid: str) -> Refusal | None:
        try:
            made = await self._cluster.create(action.resource, action.manifest)
        except AlreadyExists:
            return await self._find_existing(action, owner_uid)
        except (Forbidden, Invalid) as error:
            return _refusal(action, error)
        self._gate.wrote(owner_uid, action.resource, made)
        return None

    async def _find_existing(self, action: Create, owner_uid: str) -> Refusal | None:
        """The name is taken. By ourselves, if an answer was lost: then only our labels may be missing."""
        metadata = action.manifest["metadata"]
        found = await self._cluster.get(action.resource, Key(metadata["namespace"], metadata["name"]))
        if not found.metadata.controlled_by(owner_uid):
            return Refusal(action.resource, metadata["name"], taken=True, message="the name is taken")
        labels, found_labels = metadata.get("labels", {}), found.metadata.labels
        marks = {name: found_labels.get(name) for name in action.identity}
        is_this = all(
            mark == labels[name] or (mark is None and action.or_unmarked) for name, mark in marks.items()
        )
        # A mark is never changed, only added: one of a later try may be here already.
        missing = {
            name: value
            for name, value in labels.items()
            if found_labels.get(name) != value
            and (name not in marks or (marks[name] is None and action.or_unmarked))
        }
        if missing:
            # Without them our watch would not show it, also if it is an older one that has to go first. Only
            # as it was found: another manager may have marked it since.
            body = {"metadata": {"labels": missing, "resourceVersion": found.metadata.resource_version}}
            await self._patch(Patch(Target.of(action.resource, found), body, purpose="label"), owner_uid)
        else:
            self._gate.wrote(owner_uid, action.resource, found)
        if not is_this:
            raise Conflict(f"{action.resource} {found.metadata.name} is one of ours, but of another try")
        return None

    async def _patch(self, action: Patch, owner_uid: str) -> None:
        body = {**action.body, "metadata": {**action.body.get("metadata", {}), "uid": action.target.uid}}
        try:
            result = await self._cluster.patch(action.target, body)
        except NotFound:
            # Gone, and so perhaps its job: until the cache shows it, we would go on as if they were there.
            self._gate.deleted(owner_uid, action.target, at_once=True)
            return
        self._gate.wrote(owner_uid, action.target.resource, result)

    async def _delete(self, action: Delete, owner_uid: str) -> None:
        target = action.target
        try:
            await self._cluster.delete(target, as_seen=action.as_seen, force=action.force)
        except NotFound:
            # Somebody else was quicker. The cache has still to show it, or it would be asked for again.
            self._gate.deleted(owner_uid, target, at_once=True)
            return
        except Conflict:
            # It has moved on; or it is gone, and another of that name has come, which was not meant.
            self._gate.outdated(owner_uid, target)
            return
        self._gate.deleted(owner_uid, target, at_once=action.force)

    async def _set_status(self, action: SetStatus, owner_uid: str) -> None:
        target = action.target
        identity = {"uid": target.uid, "resourceVersion": target.resource_version}
        body = {"metadata": identity, "status": action.changes}
        try:
            result = await self._cluster.patch(target, body, subresource="status")
        except (Conflict, NotFound) as error:
            if isinstance(error, NotFound):
                # Gone, perhaps; or its kind is not served for a moment. Nothing that follows may be done yet.
                log.info("status was not taken", problem=str(error))
            self._gate.outdated(owner_uid, target)
            raise Conflict(str(error)) from error
        self._gate.wrote(owner_uid, target.resource, result)


class _StepRun:
    """What the actions of one step have met so far."""

    def __init__(self, step: Step) -> None:
        self.step = step
        self.actions = iter(step)
        """What has not been begun, shared by all hands."""
        self.sent = 0
        self.wrote_status = False
        self.errors: list[ApiError] = []
        self.refusals: list[Refusal] = []
        self.troubles: list[Refusal] = []
        self.failing: set[str] = set()

    def met(self, action: Action, error: ApiError) -> None:
        self.errors.append(error)
        if not isinstance(error, Conflict):
            self.failing.add(_kind(action))

    @property
    def failed(self) -> bool:
        return bool(self.errors or self.refusals)

    def outcome(self, *, wrote_status: bool, done: frozenset[str]) -> Outcome:
        sent_well = self.sent - len(self.refusals)
        real = [error for error in self.errors if not isinstance(error, Conflict)]
        return Outcome(
            wrote_status=wrote_status,
            refusals=tuple(self.refusals),
            outdated=bool(self.errors) and not real,
            error=next(iter(real), None),
            troubles=tuple(self.troubles),
            failed_step=f"{_described(self.step[0])}: {sent_well} of {len(self.step)} done",
            failing=frozenset(self.failing),
            done=done,
        )


def _refusal(action: Create, error: ApiError) -> Refusal:
    return Refusal(action.resource, action.manifest["metadata"]["name"], taken=False, message=str(error))


def _report(step: Step) -> None:
    """One line for each kind of action; what fails is reported by whoever tries again."""
    for event in step:
        if isinstance(event, Emit):
            log.info(event.reason, message=event.message)
    for what, count in Counter(_described(one) for one in step if not isinstance(one, Emit)).items():
        log.info(what, **({"count": count} if count > 1 else {}))


def _kind(action: Action) -> str:
    """Where one fails, others of its kind will: what a status says does not matter."""
    return "set status" if isinstance(action, SetStatus) else _described(action)


def _described(action: Action) -> str:
    match action:
        case Create(resource=resource):
            return f"create {resource.plural}"
        case Patch(target=target, purpose=purpose):
            return f"{purpose} {target.resource.plural}"
        case Delete(target=target):
            return f"delete {target.resource.plural}"
        case SetStatus(changes=changes):
            return f"set phase {changes['phase']}" if "phase" in changes else "set status"
        case Emit(reason=reason):
            return f"say {reason}"
