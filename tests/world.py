"""A test's corner of a real API server: a namespace, a client with all rights, and the audit log.

Waiting is done by watching, never by sleeping; a wait that fails says what was seen last.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from audit import Request, read_audit_log

from paddle_operator.api.core import ConfigMap, Lease, Pod
from paddle_operator.api.meta import Key, KubeObject, Manifest, find_condition
from paddle_operator.api.paddlejob import PaddleJob
from paddle_operator.api.resources import (
    CONFIG_MAPS,
    LEASES,
    PADDLE_JOBS,
    PODS,
    AnyResource,
    Resource,
    Target,
)
from paddle_operator.api.rights import FOLLOWED, LEASE_NAME, rules
from paddle_operator.cluster import ApiError, NotFound, Scope, Verb
from paddle_operator.kube.client import KubeCluster, path
from paddle_operator.kube.transport import Transport
from testbed.controlplane import ControlPlane
from testbed.node import FakeNode

T = TypeVar("T", bound=KubeObject)
# Real training on a busy machine takes its time; only a wait that is in vain lasts so long.
PATIENCE_SECONDS = 180.0

OPERATOR = "paddle-operator"
# With the same rights, so that the audit log tells both apart.
SECOND_OPERATOR = "second-operator"
# Many managers run at once on one machine.
NO_ADDRESSES = ("--metrics-bind-address=0", "--health-probe-bind-address=0")
# What the operator may do in a namespace; a request beyond it fails the tests.
OPERATOR_RULES: list[Manifest] = rules(FOLLOWED)


@dataclass
class World:
    plane: ControlPlane
    namespace: str
    transport: Transport
    managers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    logs: list[Path] = field(default_factory=list)

    @property
    def cluster(self) -> KubeCluster:
        return KubeCluster(self.transport)

    async def post(self, where: str, manifest: Manifest) -> None:
        await self.transport.request("POST", where, body=msgspec.json.encode(manifest))

    async def submit(self, manifest: Manifest) -> PaddleJob:
        placed = {**manifest, "metadata": {**manifest["metadata"], "namespace": self.namespace}}
        return await self.cluster.create(PADDLE_JOBS, placed)

    async def get(self, resource: Resource[T], name: str) -> T | None:
        try:
            return await self.cluster.get(resource, Key(self.namespace, name))
        except NotFound:
            return None

    async def pods(self) -> dict[str, Pod]:
        listing = await self.cluster.list(PODS, Scope(self.namespace))
        return {pod.metadata.name: pod for pod in listing.items if isinstance(pod, Pod)}

    async def config_map_data(self, name: str) -> dict[str, str]:
        body = await self.transport.request("GET", path(CONFIG_MAPS, self.namespace, name))
        data: dict[str, str] = json.loads(body)["data"]
        return data

    async def delete(self, resource: AnyResource, thing: KubeObject) -> None:
        await self.cluster.delete(Target.of(resource, thing))

    async def until(
        self, resource: Resource[T], name: str, holds: Callable[[T | None], bool], what: str = ""
    ) -> T | None:
        """The object (or None: there is none) as soon as it is as wanted."""
        last = await self.get(resource, name)
        if holds(last):
            return last
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while True:
                    listing = await self.cluster.list(resource, Scope(self.namespace))
                    last = await self.get(resource, name)
                    if holds(last):
                        return last
                    since = listing.resource_version
                    async with aclosing(
                        self.cluster.watch(resource, Scope(self.namespace), since)
                    ) as changes:
                        async for change in changes:
                            seen = change.object
                            if not isinstance(seen, resource.type) or seen.metadata.name != name:
                                continue
                            last = None if change.verb is Verb.DELETED else seen
                            if holds(last):
                                return last
        except TimeoutError:
            shown = msgspec.json.encode(last).decode() if last is not None else "nothing"
            raise AssertionError(f"waited in vain for {what or name}; last seen: {shown}") from None

    async def job_until(self, name: str, holds: Callable[[PaddleJob], bool], what: str = "") -> PaddleJob:
        job = await self.until(PADDLE_JOBS, name, lambda seen: seen is not None and holds(seen), what)
        assert job is not None
        return job

    async def phase(self, name: str, *phases: str) -> PaddleJob:
        return await self.job_until(name, lambda job: job.status.phase in phases, f"{name} to be {phases}")

    async def condition(self, name: str, kind: str, status: str, reason: str = "") -> PaddleJob:
        def matches(job: PaddleJob) -> bool:
            found = find_condition(job.status.conditions, kind)
            return found is not None and found.status == status and (not reason or found.reason == reason)

        return await self.job_until(name, matches, f"{kind}={status} ({reason}) of {name}")

    async def pod_until(self, name: str, holds: Callable[[Pod], bool]) -> Pod:
        pod = await self.until(PODS, name, lambda seen: seen is not None and holds(seen), f"pod {name}")
        assert pod is not None
        return pod

    async def config_map(self, name: str) -> ConfigMap:
        found = await self.until(CONFIG_MAPS, name, lambda seen: seen is not None, f"config map {name}")
        assert found is not None
        return found

    async def gone(self, resource: Resource[T], name: str) -> None:
        await self.until(resource, name, lambda seen: seen is None, f"{resource.kind} {name} to be gone")

    async def patch(self, resource: AnyResource, name: str, body: Manifest, subresource: str = "") -> None:
        """As somebody with all rights, whatever the object is like now."""
        await self.transport.request(
            "PATCH",
            path(resource, self.namespace, name, subresource),
            body=msgspec.json.encode(body),
            content_type="application/merge-patch+json",
        )

    async def events(self, name: str) -> list[tuple[str, str]]:
        """What was told of a job, in its order: type and reason."""
        body = await self.transport.request("GET", f"/api/v1/namespaces/{self.namespace}/events")
        found = [one for one in json.loads(body)["items"] if one["involvedObject"]["name"] == name]
        found.sort(key=lambda one: int(one["metadata"]["resourceVersion"]))
        return [(one["type"], one["reason"]) for one in found]

    def kubectl(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        command = [str(self.plane.kubectl), "--kubeconfig", str(self.plane.kubeconfig), "-n", self.namespace]
        return subprocess.run(
            [*command, *arguments], input=stdin, capture_output=True, text=True, check=False
        )

    async def no_pods(self) -> None:
        for name in await self.pods():
            await self.gone(PODS, name)

    def fake_node(self, **options: Any) -> FakeNode:
        """A node that plays the pods of this namespace."""
        return FakeNode(
            url=self.plane.url,
            token=self.plane.token_for("fake-node"),
            ca_file=self.plane.ca_file,
            namespace=self.namespace,
            **options,
        )

    # The operator as a process, as users run it.

    def start_manager(
        self, *, user: str = OPERATOR, namespace: str | None = None, options: Sequence[str] = ()
    ) -> subprocess.Popen[bytes]:
        scope = self.namespace if namespace is None else namespace
        command = [sys.executable, "-m", "paddle_operator", "manager"]
        command += [
            "--kubeconfig",
            str(self.plane.kubeconfig_for(user)),
            f"--namespace={scope}",
            *NO_ADDRESSES,
        ]
        # A file, not a pipe: nobody reads while the test runs, and a full pipe would stop the manager.
        log = self.plane.audit_log.with_name(f"manager-{self.namespace}-{len(self.managers)}.log")
        with log.open("wb") as file:
            process = subprocess.Popen([*command, *options, "--log-format=json"], stderr=file)
        self.managers.append(process)
        self.logs.append(log)
        return process

    def kill(self, manager: subprocess.Popen[bytes], number: int = signal.SIGKILL) -> None:
        manager.send_signal(number)
        manager.wait(timeout=10)

    def stop_managers(self) -> list[dict[str, Any]]:
        """All log lines of all managers; each must have lived until now or been killed by the test."""
        lines: list[dict[str, Any]] = []
        for process, log in zip(self.managers, self.logs, strict=True):
            if process.poll() is None:
                process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            errors = log.read_bytes()
            lines.extend(_parse(line) for line in errors.splitlines())
            # One that has just been started does not listen to signals yet.
            assert process.returncode in {0, -signal.SIGKILL, -signal.SIGTERM}, errors.decode()
        return lines

    async def leader(self, *, other_than: str = "") -> str:
        """Who holds the operators' lease in this namespace, as soon as somebody (else) does."""

        def is_held(lease: Lease | None) -> bool:
            return lease is not None and (lease.spec.holder_identity or "") not in {"", other_than}

        lease = await self.until(LEASES, LEASE_NAME, is_held, f"a leader other than {other_than!r}")
        assert lease is not None
        return lease.spec.holder_identity or ""

    def requests(self, user: str = OPERATOR) -> list[Request]:
        """What the user asked of the server in this namespace, from the audit log."""
        return [
            request
            for request in read_audit_log(self.plane.audit_log)
            if request.user == user and request.namespace == self.namespace
        ]


def _parse(line: bytes) -> dict[str, Any]:
    try:
        parsed: dict[str, Any] = json.loads(line)
    except ValueError:
        return {"event": line.decode(errors="replace"), "level": "unparsed"}
    return parsed


async def servers_complaint(transport: Transport, text: str) -> str:
    """What the server says to the file as it is, under strict field validation; empty if it takes it."""
    try:
        await transport.request(
            "POST",
            path(PADDLE_JOBS, "default"),
            query={"dryRun": "All", "fieldValidation": "Strict"},
            body=text.encode(),
            content_type="application/json" if text.startswith("{") else "application/yaml",
        )
    except ApiError as error:
        return str(error) or type(error).__name__
    return ""


def unique_name(prefix: str) -> str:
    return f"{prefix}-{os.getpid()}"
