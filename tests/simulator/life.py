"""A job's whole life with the unchanged manager, on the cluster in memory, under a virtual clock.

    Workload (what the user and the pods do) + Faults (what goes wrong) -> live() -> Life (what was seen)

Nothing here draws lots or reads a clock: the same workload and faults give the same life, write by write. A
crashed manager is followed by another on the same store with empty caches, as a process would be.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import structlog

from paddle_operator.api.crd import paddle_job_schema
from paddle_operator.api.meta import Key, Manifest
from paddle_operator.api.paddlejob import PaddleJob
from paddle_operator.api.resources import PADDLE_JOBS, PODS, AnyResource, Target
from paddle_operator.app import PaddleJobManager
from paddle_operator.memory.cluster import MemoryCluster
from paddle_operator.paddlejob.labels import owner_reference
from paddle_operator.paddlejob.observed import Observed
from paddle_operator.runtime.controller import Recollection
from simulator import deeds, invariants
from simulator.acts import Act, Stage
from simulator.connection import Connection
from simulator.faults import Faults, Interference, SecondLeader
from simulator.history import NAMESPACE, TrueHistory, now
from simulator.kubelet import Kubelet
from simulator.schedule import A_MOMENT, Schedule, Steady
from simulator.virtual_loop import VirtualLoop
from simulator.witness import CURRENT_DEED, Witness

RESTART_SECONDS = 1.0
# Longer than any patience in the operator (a silent watch is given up after 150 s): then nothing will come.
REST_SECONDS = 200.0
LONGEST_LIFE_SECONDS = 3600.0
USER = "user"
# Not ours, and to be left as it is, on every job.
FOREIGN_CONDITION = {"type": "Billed", "status": "True", "reason": "ByAccounting", "message": "12 units"}


@dataclass(frozen=True)
class Recreation:
    """The user deletes the job, and creates it anew under the same name."""

    after_seconds: float
    pause_seconds: float


@dataclass(frozen=True)
class Workload:
    manifest: Manifest
    exit_codes: Mapping[str, int | Sequence[int]] = field(default_factory=dict)
    run_seconds: Mapping[str, float | Sequence[float]] = field(default_factory=dict)
    in_place: Mapping[str, int] = field(default_factory=dict)
    reports: Mapping[str, str] = field(default_factory=dict)
    """What pods say of themselves when they end well, by their names."""
    recreation: Recreation | None = None
    acts: tuple[Act, ...] = ()
    """What people and machines do meanwhile, one after the other."""
    others: tuple[tuple[AnyResource, Manifest], ...] = ()
    """What is in the namespace before the job; another job, perhaps."""
    misfits: tuple[Manifest, ...] = ()
    """Pods that name the job as their controller but fill none of its slots."""
    adopted: Callable[[PaddleJob], Iterable[tuple[AnyResource, Manifest]]] = lambda _: ()
    """What another operator has made for the job before ours comes."""

    @property
    def name(self) -> str:
        name: str = self.manifest["metadata"]["name"]
        return name

    @property
    def has_deadline(self) -> bool:
        policy = self.manifest["spec"].get("runPolicy", {})
        return not policy.keys().isdisjoint({"activeDeadlineSeconds", "startDeadlineSeconds"})

    def without_tries(self, tries: Collection[int]) -> "Workload":
        """The pods end in the others as they do in this one; the same object if that is no other life."""
        parts = {"exit_codes": self.exit_codes, "run_seconds": self.run_seconds}
        left = {
            part: {name: _left_of(one, tries) for name, one in planned.items()}
            for part, planned in parts.items()
        }
        return self if left == parts else replace(self, **left)  # type: ignore[arg-type]


def _left_of(planned: object, tries: Collection[int]) -> object:
    """The last is for all that follow."""
    if not isinstance(planned, Sequence):
        return planned
    return (*(one for number, one in enumerate(planned[:-1]) if number not in tries), planned[-1])


@dataclass(frozen=True)
class Life:
    workload: Workload
    faults: Faults
    schedule: Schedule
    history: TrueHistory
    kubelet: Kubelet
    witness: Witness
    crashes: int
    rested: bool
    """Nothing was asked and nothing changed any more, long before the time was up."""
    log: list[Manifest]

    @property
    def job(self) -> Manifest:
        return self.jobs[self.workload.name]

    @property
    def jobs(self) -> dict[str, Manifest]:
        return self.history.of_kind(PADDLE_JOBS)

    def check(self) -> None:
        """Raise the first broken invariant, with the story that led to it."""
        complaint = self.witness.complaint()
        assert not complaint, complaint


class WatchedManager(PaddleJobManager):
    """The manager as it is; only that somebody notes on which picture each of its turns decides."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection, NAMESPACE, connection.clock)
        self._connection = connection

    async def _gather(self, job: PaddleJob, memory: Recollection) -> Observed:
        self._connection.turn_begins(job)
        seen = await super()._gather(job, memory)
        self._connection.turn_decides_on(seen.job)
        return seen


def live(workload: Workload, faults: Faults | None = None, schedule: Schedule | None = None) -> Life:
    """From the job's creation until nothing moves any more. Broken invariants are kept for Life.check().

    Each life has a loop of its own, whose clock begins at 0: what was lived before makes no difference.
    """
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(_live(workload, faults or Faults(), (schedule or Steady()).afresh()))


async def _live(workload: Workload, faults: Faults, schedule: Schedule) -> Life:
    history = TrueHistory()
    memory = MemoryCluster(now, {PADDLE_JOBS: paddle_job_schema()})
    memory.history = history
    witness = Witness(history, invariants.ALL)
    kubelet = Kubelet(memory, history, workload.exit_codes, workload.run_seconds, workload.in_place, schedule)
    kubelet.reports = workload.reports
    user = User(memory, workload)
    stage = Stage(memory, history, kubelet, workload.name, user.create)
    processes = Processes(memory, history, faults, schedule, witness)
    with structlog.testing.capture_logs() as log:
        await user.begin()
        actors = [kubelet.run(), user.run(), processes.run(), stage.play(workload.acts)]
        actors += [_interfere(one, stage, schedule) for one in faults.of(Interference)]
        tasks = [asyncio.create_task(actor) for actor in actors]
        try:
            rested = await _until_rest(tasks, witness, kubelet)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
    lines = [dict(line) for line in log]
    life = Life(workload, faults, schedule, history, kubelet, witness, processes.crashes, rested, lines)
    witness.at_rest(life)
    return life


async def _interfere(planned: Interference, stage: Stage, schedule: Schedule) -> None:
    await stage.history.reach(planned.change)
    await schedule.pause(USER)
    CURRENT_DEED.set((planned, f"somebody: {planned.deed}"))
    await deeds.do(planned.deed, stage)


async def _until_rest(tasks: Sequence[asyncio.Task[None]], witness: Witness, kubelet: Kubelet) -> bool:
    clock = asyncio.get_running_loop().time
    while clock() < LONGEST_LIFE_SECONDS:
        left = witness.moved_at + REST_SECONDS - clock()
        if left < A_MOMENT and kubelet.is_idle:
            return True
        await asyncio.sleep(left if left >= A_MOMENT else REST_SECONDS)
        for task in tasks:
            if task.done():
                task.result()  # none of them may fail
    return False


@dataclass
class Processes:
    """One manager after the other; and beside them those of a second leader, if there is one."""

    memory: MemoryCluster
    history: TrueHistory
    faults: Faults
    schedule: Schedule
    witness: Witness
    crashes: int = 0

    async def run(self) -> None:
        async with asyncio.TaskGroup() as managers:
            managers.create_task(self._one_after_the_other("manager 1"))
            for number, second in enumerate(self.faults.of(SecondLeader), start=2):
                managers.create_task(self._one_after_the_other(f"manager {number}", second))

    async def _one_after_the_other(self, name: str, beside: SecondLeader | None = None) -> None:
        while True:
            connection = Connection(
                self.memory,
                self.history,
                self.faults,
                self.schedule,
                self.witness,
                name,
                beside,
            )
            # In a task of its own: a group that fails leaves a cancellation behind in Python 3.11.
            process = connection.process = asyncio.create_task(WatchedManager(connection).run())
            try:
                await asyncio.wait({process})
            finally:
                process.cancel()
                await asyncio.wait({process})
            error = None if process.cancelled() else process.exception()
            if not connection.crashed:
                raise AssertionError("the manager ended by itself") from error
            self.crashes += 1
            await asyncio.sleep(RESTART_SECONDS)


@dataclass
class User:
    memory: MemoryCluster
    workload: Workload
    born: int = 0

    async def begin(self) -> None:
        for resource, manifest in self.workload.others:
            await self.memory.create(resource, _placed(manifest))
        await self.create()

    async def run(self) -> None:
        plan = self.workload.recreation
        if plan is not None:
            await asyncio.sleep(plan.after_seconds)
            key = Key(NAMESPACE, self.workload.name)
            job = await self.memory.get(PADDLE_JOBS, key)
            await self.memory.delete(Target.of(PADDLE_JOBS, job))
            await asyncio.sleep(plan.pause_seconds)
            await self.create()

    async def create(self) -> None:
        self.born += 1
        job = await self.memory.create(PADDLE_JOBS, _placed(self.workload.manifest))
        billed = {"status": {"conditions": [FOREIGN_CONDITION]}}
        await self.memory.patch(Target.of(PADDLE_JOBS, job), billed, subresource="status")
        for resource, manifest in self.workload.adopted(job):
            await self.memory.create(resource, manifest)
        for misfit in self.workload.misfits:
            name = f"{misfit['metadata']['name']}-{self.born}"
            owned = {**misfit["metadata"], "name": name, "ownerReferences": [owner_reference(job)]}
            await self.memory.create(PODS, _placed({**misfit, "metadata": owned}))


def _placed(manifest: Manifest) -> Manifest:
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": NAMESPACE}}
