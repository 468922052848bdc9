"""The floor: the least that an operator in Python can do for a job, to compare real operators with.

    python -m benchmarks.floor --kubeconfig FILE --job FILE [--only-pods]

It follows jobs and pods, makes the same objects as our operator, all at once, writes the config map when all
addresses are known and patches each pod then, writes the status twice, and deletes one by one. It remembers
nothing and checks nothing: no cache, no validation, no UIDs, no second try, no log. Nobody should run it.
With --only-pods it makes the pods and leaves them alone: what that takes is the server's own time.

What is made is rendered once, from the job in the file, before any job comes: names and UIDs are filled in.
"""

import argparse
import asyncio
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from msgspec import Struct

from paddle_operator.api.meta import Manifest
from paddle_operator.api.names import ANNOTATION_NUDGE, LABEL_RES_TYPE
from paddle_operator.api.paddlejob import CleanPodPolicy, PaddleJob
from paddle_operator.api.resources import PADDLE_JOBS
from paddle_operator.paddlejob.render import render
from testbed.node_client import ApiClient, Server

IN_FLIGHT = 32
NAME, UID = b"name-of-the-job", b"<uid of the job>"
ADDRESS = re.compile(rb"<address of ([^>]+)>")
MERGE = "application/merge-patch+json"
NUDGE = msgspec.json.encode({"metadata": {"annotations": {ANNOTATION_NUDGE: "1"}}})
JOBS = f"/apis/{PADDLE_JOBS.api_version}"
# As all clients watch: without them the server ends a watch after a time of its own, or forgets where it was.
WATCH = "watch=1&allowWatchBookmarks=true&timeoutSeconds=290"


class Meta(Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class PodStatus(Struct, frozen=True):
    phase: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")


class Thing(Struct, frozen=True):
    """A pod, or a job, of which only the metadata matter."""

    metadata: Meta
    status: PodStatus = PodStatus()


class _List(Struct, frozen=True):
    metadata: Meta
    items: list[Thing]


class _Event(Struct, frozen=True):
    type: str
    object: Thing


_list = msgspec.json.Decoder(_List)
_event = msgspec.json.Decoder(_Event)


class _Stream:
    """A list, and then all changes; a watch that ends is resumed."""

    def __init__(self, client: ApiClient, path: str, query: str = "") -> None:
        self._client = client
        self._path = path
        self._query = query
        self._version = ""

    async def begin(self) -> _List:
        _, body = await self._client.send("GET", f"{self._path}?{self._query}")
        listed = _list.decode(body)
        self._version = listed.metadata.resource_version
        return listed

    async def follow(self, tell: Callable[[_Event], None]) -> None:
        def told(line: bytes) -> None:
            event = _event.decode(line)
            self._version = event.object.metadata.resource_version
            tell(event)

        while True:
            query = f"{self._query}&{WATCH}&resourceVersion={self._version}"
            await self._client.lines(f"{self._path}?{query}", told)


@dataclass(frozen=True)
class Recipe:
    """What a job becomes: the bodies of its objects, by kind, and the names of its pods."""

    by_name: bool
    cleans: bool
    workers: int
    config_map: bytes
    pods: dict[bytes, bytes]
    services: dict[bytes, bytes]

    @classmethod
    def of(cls, job: PaddleJob) -> "Recipe":
        made = render(job)
        (config_map,) = _bodies(made, "ConfigMap").values()
        return cls(
            by_name=job.found_by_name,
            cleans=job.spec.clean_pod_policy == CleanPodPolicy.ALWAYS,
            workers=job.spec.worker.replicas,
            config_map=config_map,
            pods=_bodies(made, "Pod"),
            services=_bodies(made, "Service"),
        )


def _bodies(made: Iterable[Manifest], kind: str) -> dict[bytes, bytes]:
    return {one["metadata"]["name"].encode(): msgspec.json.encode(one) for one in made if one["kind"] == kind}


@dataclass
class Life:
    """Of one job: which of its pods have come how far."""

    addresses: dict[bytes, bytes] = field(default_factory=dict)
    running: set[bytes] = field(default_factory=set)
    ended: set[bytes] = field(default_factory=set)
    all_have_addresses: asyncio.Event = field(default_factory=asyncio.Event)
    all_run: asyncio.Event = field(default_factory=asyncio.Event)
    all_ended: asyncio.Event = field(default_factory=asyncio.Event)


class Floor:
    def __init__(self, client: ApiClient, recipe: Recipe, *, only_pods: bool) -> None:
        self._client = client
        self._recipe = recipe
        self._only_pods = only_pods
        self._places = asyncio.Semaphore(IN_FLIGHT)
        self._lives: dict[str, Life] = {}
        self._tasks = asyncio.TaskGroup()

    async def run(self) -> None:
        async with self._tasks as tasks:
            if not self._only_pods:
                pods = _Stream(self._client, "/api/v1/pods", f"labelSelector={LABEL_RES_TYPE}")
                await pods.begin()
                tasks.create_task(pods.follow(self._saw_pod))
            jobs = _Stream(self._client, f"{JOBS}/{PADDLE_JOBS.plural}")
            for job in (await jobs.begin()).items:
                self._saw_job(_Event("ADDED", job))
            tasks.create_task(jobs.follow(self._saw_job))

    def _saw_job(self, event: "_Event") -> None:
        if event.type == "ADDED":
            self._lives[event.object.metadata.name] = life = Life()
            self._tasks.create_task(self._live(event.object.metadata, life))

    def _saw_pod(self, event: "_Event") -> None:
        """Sets, because a state is seen more than once."""
        name, status = event.object.metadata.name, event.object.status
        life = self._lives.get(name.rsplit("-", 2)[0])
        if life is None:
            return
        key, everybody = name.encode(), len(self._recipe.pods)
        if status.pod_ip:
            life.addresses[key] = status.pod_ip.encode()
            if len(life.addresses) == everybody:
                life.all_have_addresses.set()
        if status.phase == "Running":
            life.running.add(key)
            if len(life.running) == everybody:
                life.all_run.set()
        elif status.phase == "Succeeded" and b"-worker-" in key:
            life.ended.add(key)
            if len(life.ended) == self._recipe.workers:
                life.all_run.set()
                life.all_ended.set()

    async def _live(self, meta: Meta, life: Life) -> None:
        recipe = self._recipe
        core = f"/api/v1/namespaces/{meta.namespace}"
        status = f"{JOBS}/namespaces/{meta.namespace}/{PADDLE_JOBS.plural}/{meta.name}/status"

        def filled(body: bytes) -> bytes:
            return body.replace(NAME, meta.name.encode()).replace(UID, meta.uid.encode())

        pods = [self._send("POST", f"{core}/pods", filled(body)) for body in recipe.pods.values()]
        if self._only_pods:
            await asyncio.gather(*pods)
            return
        names = [filled(name).decode() for name in recipe.pods]
        services = [self._send("POST", f"{core}/services", filled(body)) for body in recipe.services.values()]
        if recipe.by_name:
            await self._send("POST", f"{core}/configmaps", filled(recipe.config_map))
            await asyncio.gather(*services, *pods)
        else:
            await asyncio.gather(*pods)
            await life.all_have_addresses.wait()
            peers = ADDRESS.sub(lambda match: life.addresses[match[1]], filled(recipe.config_map))
            await self._send("POST", f"{core}/configmaps", peers)
            await asyncio.gather(
                *(self._send("PATCH", f"{core}/pods/{name}", NUDGE, MERGE) for name in names)
            )
        await life.all_run.wait()
        await self._send("PATCH", status, b'{"status":{"phase":"Running"}}', MERGE)
        await life.all_ended.wait()
        await self._send("PATCH", status, b'{"status":{"phase":"Completed"}}', MERGE)
        if not recipe.cleans:
            return
        kinds = ["pods", "services"] if recipe.services else ["pods"]
        paths = [f"{core}/{kind}/{name}" for kind in kinds for name in names]
        await asyncio.gather(*(self._send("DELETE", path) for path in paths))

    async def _send(self, method: str, path: str, body: bytes = b"", media: str = "application/json") -> None:
        async with self._places:
            status, answer = await self._client.send(method, path, body, media)
        assert status < 300, (method, path, answer)


async def play(kubeconfig: Path, job: PaddleJob, *, only_pods: bool) -> None:
    client = ApiClient(Server.of_kubeconfig(kubeconfig))
    await Floor(client, Recipe.of(job), only_pods=only_pods).run()


def main() -> None:
    parser = argparse.ArgumentParser(description="The least that an operator can do.")
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--job", type=Path, required=True, help=f"JSON of a PaddleJob named {NAME.decode()}")
    parser.add_argument("--only-pods", action="store_true", help="make the pods, and leave them alone")
    options = parser.parse_args()
    job = msgspec.json.decode(options.job.read_bytes(), type=PaddleJob)
    asyncio.run(play(options.kubeconfig, job, only_pods=options.only_pods))


if __name__ == "__main__":
    main()
