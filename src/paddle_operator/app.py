"""Wires it together: which kinds are followed, how a job is seen whole, who decides, who acts."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

from .api.core import Pod
from .api.meta import Key, KubeObject
from .api.names import LABEL_JOB_UID, LABEL_RES_TYPE
from .api.paddlejob import PaddleJob
from .api.resources import CONFIG_MAPS, PADDLE_JOBS, PODS, SERVICES, AnyResource, Resource
from .api.validate import not_served, spec_problems
from .cluster import Cluster, NotFound, Scope, Unreachable
from .paddlejob import ports
from .paddlejob.deadlines import late_for_a_deadline
from .paddlejob.failures import find_failure, unconfirmed_workers
from .paddlejob.labels import is_ahead
from .paddlejob.nudge import were_woken
from .paddlejob.observed import NO_SETTINGS, Observed, Settings
from .paddlejob.reconcile import LOOK_AGAIN_AFTER, reconcile
from .paddlejob.slim import slim
from .paddlejob.sweep import is_overdue
from .paddlejob.verdicts import Question, judge
from .paddlejob.waiting import is_slow, mounted_config_maps
from .runtime.clock import SteadyClock
from .runtime.controller import WORKERS, Controller, Loop, Recollection, Turn
from .runtime.events import EventRecorder
from .runtime.executor import IN_FLIGHT, Executor
from .runtime.gate import CacheGate
from .runtime.informer import Informer
from .runtime.queue import KeyQueue
from .runtime.store import Store

T = TypeVar("T", bound=KubeObject)


@dataclass(frozen=True)
class Meter:
    """Who is told of the work, to measure it. Nobody, if nobody wants to know."""

    turned: Callable[[float, Turn], None] = lambda _seconds, _ended: None
    waited: Callable[[float], None] = lambda _: None
    saw_job: Callable[[Key, PaddleJob | None], None] = lambda _key, _job: None


NOBODY = Meter()


@dataclass
class Neighbours:
    """What the managers of several namespaces of one cluster share: the nodes' ports, and the server."""

    promises: ports.Promises = field(default_factory=ports.Promises)
    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(IN_FLIGHT))
    jobs: list[Informer[PaddleJob]] = field(default_factory=list)

    def live_host_jobs(self) -> Iterator[PaddleJob]:
        """Of all namespaces, but those that are not for us to see: there the scheduler sees to the ports."""
        if not all(informer.synced.is_set() or informer.is_refused for informer in self.jobs):
            raise Unreachable("ports of nodes are given out once the jobs of all namespaces are known")
        return self.known_host_jobs()

    def known_host_jobs(self) -> Iterator[PaddleJob]:
        for informer in self.jobs:
            yield from (job for job in informer.store if job.on_host_network and not job.status.finished)


class PaddleJobManager:
    """The controller of PaddleJobs on one cluster, whichever it is. An empty namespace means all of them."""

    def __init__(
        self,
        cluster: Cluster,
        namespace: str = "",
        now: Callable[[], datetime] | None = None,
        settings: Settings = NO_SETTINGS,
        *,
        neighbours: Neighbours | None = None,
        workers: int = WORKERS,
        meter: Meter = NOBODY,
    ) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._now = now = now or SteadyClock()
        self._settings = settings
        self._neighbours = neighbours or Neighbours()
        self._workers = workers
        self._meter = meter
        self._asked_for_maps: dict[Key, tuple[datetime, tuple[str, ...]]] = {}
        self._queue = KeyQueue(on_take=meter.waited)
        self._recorder = EventRecorder(cluster, "paddle-operator", now)
        self._jobs = Informer(
            cluster,
            PADDLE_JOBS,
            Scope(namespace),
            Store[PaddleJob](lambda job: job.metadata.key),
            on_change=self._job_changed,
        )
        self._neighbours.jobs.append(self._jobs)
        # The Go operator's pods have this label too: a live job survives the change of operator.
        self._pods = self._follow(PODS, Store(_owning_job, _kept), selector=LABEL_RES_TYPE)
        self._services = self._follow(SERVICES, Store(_owning_job), selector=LABEL_JOB_UID)
        self._config_maps = self._follow(CONFIG_MAPS, Store(_owning_job), selector=LABEL_JOB_UID)

    @property
    def unlisted(self) -> list[str]:
        """The kinds that are not known yet: until then nothing is decided."""
        return [_named(informer) for informer in self._informers if not informer.synced.is_set()]

    @property
    def unfollowed(self) -> list[str]:
        """The kinds of whose changes nothing is heard now."""
        return [_named(informer) for informer in self._informers if informer.trouble]

    async def look(self) -> None:
        """Returns when everything could be listed once: the server knows the kinds, and lets us see them."""
        async with asyncio.TaskGroup() as tasks:
            following = [tasks.create_task(informer.run()) for informer in self._informers]
            for informer in self._informers:
                await informer.synced.wait()
            for task in following:
                task.cancel()

    @property
    def waiting_turns(self) -> int:
        return self._queue.overdue

    async def drain(self) -> None:
        """No turn begins any more; returns when those under way have ended."""
        await self._queue.close()

    @property
    def _informers(self) -> tuple[Informer[KubeObject], ...]:
        return (self._jobs, self._pods, self._services, self._config_maps)  # type: ignore[return-value]

    async def run(self) -> None:
        """Until cancelled."""
        informers = self._informers
        stores: dict[AnyResource, Store[KubeObject]] = {one.resource: one.store for one in informers}
        gate = CacheGate(stores)
        controller = Controller(
            Loop(self._jobs, informers[1:], self._gather, reconcile),
            queue=self._queue,
            gate=gate,
            executor=Executor(self._cluster, gate, self._recorder, self._neighbours.places),
            recorder=self._recorder,
            now=self._now,
            workers=self._workers,
            on_turn=self._meter.turned,
        )
        await controller.run()

    async def _gather(self, job: PaddleJob, memory: Recollection) -> Observed:
        key = job.metadata.key
        pods, config_map = self._pods.store.concerning(key), self._config_maps.store.get(key)
        children = (*pods, config_map) if config_map is not None else pods
        job = await self._as_new_as(job, children)
        seen = Observed(
            job=job,
            now=self._now(),
            pods=pods,
            services=self._services.store.concerning(key),
            config_map=config_map,
            settings=self._settings,
            refusals=memory.refusals,
            status_written_at=memory.status_written_at,
        )
        if seen.contradicts_the_job:
            seen = replace(seen, job=await self._newest(job))
        # First, because what is left of an earlier try hides that nobody has looked for the map of this one.
        seen = await self._without_gone_pods(seen)
        job = seen.job
        is_over = job.status.finished or job.run_policy.suspend
        is_first = not (seen.own or seen.namesakes or seen.leftovers)
        is_hidden = seen.config_map is None and (is_first or were_woken(seen))
        if not is_over and (is_hidden or seen.reads_an_old_list):
            # Before the first pod a map of that name, whoever's it is, would start it with wrong peers. One
            # that some have read may only hide: to take it for gone would cost them a restart.
            config_map = await self._look_up(CONFIG_MAPS, key)
            job = await self._as_new_as(job, () if config_map is None else (config_map,))
            seen = replace(seen, job=job, config_map=config_map)
        if ports.are_due(seen) and not (not_served(job) or spec_problems(job)):
            free = self._neighbours.promises.to(job, self._neighbours.live_host_jobs())
            seen = replace(seen, free_host_port=free)
        if ports.may_give_way(seen):
            seen = replace(seen, ports_are_of=await self._holder_of_ports_of(seen))
        seen = await self._with_missing_config_maps(seen)
        if job.status.finished or job.metadata.terminating:
            return seen
        if _matters_who_is_missing(seen):
            seen = await self._with_hidden_pods(seen)
        for question in (late_for_a_deadline(seen), unconfirmed_workers(seen)):
            seen = await self._with_answers(seen, question)
        return seen

    async def _holder_of_ports_of(self, seen: Observed) -> str:
        """Asked for by name before it costs a try: it may have ended, or our pods have found a place."""
        for one in [*ports.older_holders(seen.job, self._neighbours.known_host_jobs())]:
            newest = await self._look_up(PADDLE_JOBS, one.metadata.key)
            if newest is not None and newest.uid == one.uid and ports.holds_before(newest, seen.job):
                return str(one.metadata.key) if await self._still_waits(seen) else ""
        return ""

    async def _still_waits(self, seen: Observed) -> bool:
        """One pod that has no place decides, so nobody asks for the rest."""
        for name in ports.without_a_place(seen):
            pod = await self._look_up(PODS, Key(seen.job.metadata.namespace, name))
            if pod is None or not pod.spec.node_name:
                return True
        return False

    async def _as_new_as(self, job: PaddleJob, children: Iterable[KubeObject]) -> PaddleJob:
        """One of them may be of a try that our picture of the job does not know yet."""
        if not any(child.metadata.controlled_by(job.uid) and is_ahead(job, child) for child in children):
            return job
        return await self._newest(job)

    async def _newest(self, job: PaddleJob) -> PaddleJob:
        """Before something is deleted for which no status has to be written: that would show who is late."""
        newest = await self._look_up(PADDLE_JOBS, job.metadata.key)
        return newest if newest is not None and newest.uid == job.uid else job

    async def _without_gone_pods(self, seen: Observed) -> Observed:
        """One that should be gone, perhaps is: only a watch that is late would say otherwise.

        One that is still there decides, so nobody asks for the rest.
        """
        gone = set()
        for pod in seen.all_pods:
            if is_overdue(pod, seen.now):
                found = await self._look_up(PODS, pod.metadata.key)
                if found is not None and found.metadata.uid == pod.metadata.uid:
                    break
                gone.add(pod.metadata.uid)
        if not gone:
            return seen
        return replace(seen, pods=tuple(pod for pod in seen.pods if pod.metadata.uid not in gone))

    async def _with_missing_config_maps(self, seen: Observed) -> Observed:
        """Asked now and then, while pods do not start: only an event of a kubelet would say so."""
        job = seen.job.metadata
        names = mounted_config_maps(seen) if is_slow(seen) and not job.terminating else ()
        if not names:
            self._asked_for_maps.pop(job.key, None)
            return seen
        asked_at, missing = self._asked_for_maps.get(job.key, (None, ()))
        if asked_at is None or not asked_at <= seen.now < asked_at + LOOK_AGAIN_AFTER:
            keys = [Key(job.namespace, name) for name in names]
            missing = tuple([key.name for key in keys if await self._look_up(CONFIG_MAPS, key) is None])
            if self._jobs.store.get(job.key) is not None:  # it may have gone meanwhile
                self._asked_for_maps[job.key] = seen.now, missing
        return replace(seen, missing_config_maps=missing)

    async def _with_hidden_pods(self, seen: Observed) -> Observed:
        """A pod without its labels is not lost: ask for it by name.

        One that is really gone decides, so nobody asks for the rest.
        """
        found: list[Pod] = []
        for name in seen.missing:
            pod = await self._look_up(PODS, Key(seen.job.metadata.namespace, name))
            if pod is None or not pod.metadata.controlled_by(seen.job.uid):
                break
            if seen.attempt_of(pod) != seen.job.status.attempt:
                break
            found.append(pod)
        return replace(seen, pods=(*seen.pods, *found)) if found else seen

    async def _with_answers(self, seen: Observed, question: Question) -> Observed:
        """Ask for pods by name before something final is held against the job: a watch may be late.

        One whose answer does not help the job decides, so nobody asks for the rest.
        """
        found: list[Pod] = []
        for name in question.pods:
            pod = await self._look_up(PODS, Key(seen.job.metadata.namespace, name))
            if pod is None or is_ahead(seen.job, pod):
                break  # one of a later try is none of ours: what we write then finds that we are late
            found.append(pod)
            if judge(pod, seen.training_container(name)) not in question.helps:
                break
        # Of two pods of one name the later one is seen.
        return replace(seen, pods=(*seen.pods, *found)) if found else seen

    async def _look_up(self, resource: Resource[T], key: Key) -> T | None:
        try:
            return await self._cluster.get(resource, key)
        except NotFound:
            return None

    def _job_changed(self, key: Key) -> None:
        job = self._jobs.store.get(key)
        if job is None:
            self._asked_for_maps.pop(key, None)
        self._meter.saw_job(key, job)
        self._queue.add(key)

    def _follow(self, resource: Resource[T], store: Store[T], selector: str = "") -> Informer[T]:
        scope = Scope(self._namespace, selector, store.keep)
        return Informer(self._cluster, resource, scope, store, on_change=self._queue.add)


def _matters_who_is_missing(seen: Observed) -> bool:
    """To call a pod lost is final; and of an attempt that has failed all pods are counted."""
    return bool(seen.missing) and (seen.peers_are_told or find_failure(seen).failure is not None)


def _named(informer: Informer[KubeObject]) -> str:
    where = informer.scope.namespace
    return f"{informer.resource.plural} in {where}" if where else informer.resource.plural


def _owning_job(thing: KubeObject) -> Key | None:
    owner = thing.metadata.controller
    group = owner.api_version.partition("/")[0] if owner is not None else ""
    if owner is None or (group, owner.kind) != (PADDLE_JOBS.group, PADDLE_JOBS.kind):
        return None
    return Key(thing.metadata.namespace, owner.name)


def _kept(pod: Pod) -> Pod | None:
    """Others may have pods with such labels, by the thousand."""
    return slim(pod) if _owning_job(pod) is not None else None
