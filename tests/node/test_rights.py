"""What the operator may do is what it does. The comparison comes last, over all that the tests here did."""

from collections import defaultdict
from datetime import timedelta
from typing import Any

import pytest
from real_cluster import Cluster, tiny_job
from world import OPERATOR, SECOND_OPERATOR, Request, read_audit_log

from paddle_operator.api.names import LABEL_ATTEMPT, LABEL_JOB_UID, OLD_FINALIZER
from paddle_operator.api.resources import CONFIG_MAPS, PADDLE_JOBS, PODS, SERVICES
from paddle_operator.api.rights import FOLLOWED, LEASE
from testbed.controlplane import ControlPlane

pytestmark = pytest.mark.node

OPERATORS = frozenset({OPERATOR, SECOND_OPERATOR, "system:serviceaccount:paddle-system:paddle-manager-sa"})
# blockOwnerDeletion needs it where OwnerReferencesPermissionEnforcement is on, as here. No request shows it.
SHOWN_BY_NO_REQUEST = {("update", "paddlejobs/finalizers")}

CARRY_RIGHTS = frozenset(
    {"namespaces", "roles", "rolebindings", "clusterroles", "clusterrolebindings", "serviceaccounts"}
)
SETTLES = timedelta(seconds=60)


async def test_labels_that_somebody_takes_off_are_put_back(cluster: Cluster) -> None:
    """The rare requests: of objects that are there, although the watches do not show them."""
    world = cluster.world
    world.start_manager()
    missing = {"image": "paddle-operator/none:1", "imagePullPolicy": "Never"}
    cluster.apply(tiny_job("resnet", "sleep 600", intranet="Service"))
    # Of a job that runs nobody needs the list of peers any more; of one whose pods wait, they do.
    cluster.apply(tiny_job("waits", "", intranet="Service", container=missing))
    await world.phase("resnet", "Running")
    await world.config_map("waits")
    for resource, name in ((SERVICES, "resnet-worker-0"), (CONFIG_MAPS, "waits")):
        cluster.kubectl("label", str(resource), name, f"{LABEL_JOB_UID}-")
        await world.until(
            resource,
            name,
            lambda seen: seen is not None and LABEL_JOB_UID in seen.metadata.labels,
            f"the label of {resource} {name}",
        )
    cluster.kubectl("label", "pod", "resnet-worker-1", f"{LABEL_ATTEMPT}=7", "--overwrite")
    await world.pod_until("resnet-worker-1", lambda pod: pod.metadata.labels.get(LABEL_ATTEMPT) != "7")


async def test_an_end_with_everything_that_may_be_left(cluster: Cluster) -> None:
    """A finalizer of the Go operator, a restart, services to clean up, and a time to live."""
    world = cluster.world
    world.start_manager()
    once = "test -e /seen/it && exit 0; touch /seen/it; exit 3"
    seen: dict[str, Any] = {
        "name": "seen",
        "hostPath": {"path": str(cluster.folder), "type": "DirectoryOrCreate"},
    }
    job = tiny_job(
        "resnet",
        once,
        workers=1,
        container={"volumeMounts": [{"name": "seen", "mountPath": "/seen"}]},
        pod={"volumes": [seen]},
        intranet="Service",
        cleanPodPolicy="Always",
        runPolicy={"backoffLimit": 1, "ttlSecondsAfterFinished": 1},
    )
    job["metadata"]["finalizers"] = [OLD_FINALIZER]
    cluster.apply(job)
    await world.phase("resnet", "Completed")
    await world.gone(PADDLE_JOBS, "resnet")
    await world.gone(SERVICES, "resnet-worker-0")
    await world.gone(PODS, "resnet-worker-0")


def test_nothing_is_missing_and_nothing_unused(
    apiserver: ControlPlane, whole_run: str, outcomes: dict[str, str]
) -> None:
    if whole_run:
        pytest.skip(f"only a run of all tests in here shows all that is used: {whole_run}")
    everything = read_audit_log(apiserver.audit_log)
    # The Go operator has the same account, and the tests the same client.
    requests = [
        one for one in everything if one.user in OPERATORS and one.agent.startswith("paddle-operator/")
    ]
    taken_away = [one for one in everything if one.verb == "delete" and one.resource in CARRY_RIGHTS]
    granted = {(verb, right.resource): right.group for right in (*FOLLOWED, *LEASE) for verb in right.verbs}
    used: dict[tuple[str, str], int] = defaultdict(int)
    for request in requests:
        if request.code != 403:
            used[request.verb, request.resource] += 1
    for (verb, resource), group in sorted(granted.items(), key=lambda one: one[0][::-1]):
        told = "by blockOwnerDeletion" if (verb, resource) in SHOWN_BY_NO_REQUEST else used[verb, resource]
        outcomes[f"right: {resource} {verb}"] = f"{group or 'core'}, used {told}"
    assert refused(requests, taken_away) == []
    assert {what for what in used if what not in granted} == set()
    assert {what for what in granted if not used[what]} == SHOWN_BY_NO_REQUEST


def refused(requests: list[Request], taken_away: list[Request]) -> list[str]:
    """Requests for which a right was missing, though nobody had just taken it away."""
    return [
        f"{one.user}: {one} in {one.namespace}"
        for one in requests
        if one.code == 403
        and not any(
            one.at - SETTLES < gone.at < one.at and one.namespace in {gone.namespace, gone.name, ""}
            for gone in taken_away
        )
    ]
