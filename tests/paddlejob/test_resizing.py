"""A job that was made smaller while it was suspended keeps nothing of what it no longer is."""

import make
from plans import actions

from paddle_operator.api.meta import Manifest
from paddle_operator.paddlejob.observed import Observed
from paddle_operator.paddlejob.reconcile import reconcile
from paddle_operator.plan import Delete

SUSPENDED = {"phase": "Suspended", "mode": "Single", "attempt": 1, "observedGeneration": 1}
RESUMED = {"phase": "Pending", "mode": "Single", "attempt": 1, "observedGeneration": 1}


def shrunk(status: Manifest, *, suspend: bool) -> Observed:
    """From three workers to one, in Service mode: two services lead nowhere."""
    before = make.paddlejob(workers=3, intranet="Service")
    job = make.paddlejob(workers=1, intranet="Service", status=status, runPolicy={"suspend": suspend})
    services = tuple(make.service(job, f"resnet-worker-{rank}") for rank in range(3))
    return make.observed(job, services=services, config_map=make.config_map(before))


def deleted(seen: Observed) -> list[str]:
    return [str(one.target) for one in actions(reconcile(seen), Delete)]


def test_a_service_that_the_job_has_no_more_is_deleted_once_also_after_the_end() -> None:
    job = make.paddlejob(workers=1, intranet="Service", status={"phase": "Completed", "mode": "Single"})
    services = tuple(make.service(job, f"resnet-worker-{rank}") for rank in range(2))
    seen = make.observed(job, make.pod(job, 0, "Succeeded"), services=services)
    assert sorted(deleted(seen)) == [
        "Pod resnet-worker-0",
        "Service resnet-worker-0",
        "Service resnet-worker-1",
    ]


def test_services_beyond_a_smaller_number_go_and_so_does_the_list_of_peers() -> None:
    for status, suspend in ((SUSPENDED, True), (RESUMED, False)):
        assert deleted(shrunk(status, suspend=suspend)) == [
            "Service resnet-worker-1",
            "Service resnet-worker-2",
            "ConfigMap resnet",
        ]
