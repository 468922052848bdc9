"""The objects that the design document of the original operator shows, verbatim in tests/golden/results."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from paddle_operator.api.load import load_jobs
from paddle_operator.api.meta import Manifest
from paddle_operator.api.paddlejob import PaddleJob
from paddle_operator.paddlejob.render import render

GOLDEN = Path(__file__).parents[1] / "golden"
SET_BY_SERVER = {"resourceVersion", "selfLink", "uid"}
# What the contract adds to what is shown.
ADDED = {
    "service": {".metadata.labels", ".spec.publishNotReadyAddresses"},
    "ps": {
        ".metadata.labels",
        ".metadata.annotations",
        ".spec.restartPolicy",
        ".spec.containers.paddle.env.FLAGS_enable_pir_api",
    },
}
ADDED["worker"] = ADDED["ps"]


def seed_job(shown: Manifest) -> PaddleJob:
    """The job of the seed's example; the Service that it shows is of a job with another name and network."""
    (job,) = load_jobs((GOLDEN / "seeds/design-wide-and-deep.yaml").read_text(), "paddle-system")
    owner = shown["metadata"]["ownerReferences"][0]
    metadata = msgspec.structs.replace(job.metadata, name=owner["name"], uid=owner["uid"])
    intranet = "Service" if shown["kind"] == "Service" else "PodIP"
    return msgspec.structs.replace(
        job,
        metadata=metadata,
        spec=msgspec.structs.replace(job.spec, intranet=type(job.spec.intranet)(intranet)),
    )


def keyed(value: Any) -> Any:
    """Lists of named things as maps, so that they can be compared by name."""
    if isinstance(value, list) and all(isinstance(one, dict) and "name" in one for one in value):
        return {one["name"]: keyed(one) for one in value}
    return {name: keyed(item) for name, item in value.items()} if isinstance(value, dict) else value


def differences(shown: Any, made: Any, path: str = "") -> Iterator[str]:
    if isinstance(shown, dict) and isinstance(made, dict):
        for name in {**shown, **made}:
            if name not in SET_BY_SERVER or "ownerReferences" in path:
                yield from differences(shown.get(name), made.get(name), f"{path}.{name}")
    elif shown != made:
        yield path if shown is None else f"{path} is {made!r}, shown is {shown!r}"


@pytest.mark.parametrize("name", ["service", "ps", "worker"])
def test_every_field_that_is_shown_is_there_and_only_what_the_contract_names_is_added(name: str) -> None:
    shown = yaml.safe_load((GOLDEN / f"results/{name}.yaml").read_text())
    made = [
        one
        for one in render(seed_job(shown))
        if (one["kind"], one["metadata"]["name"]) == (shown["kind"], shown["metadata"]["name"])
    ]
    # The seed leaves the container's name out.
    for container in shown["spec"].get("containers", ()):
        container["name"] = "paddle"
    (found,) = made
    assert set(differences(keyed(shown), keyed(found))) <= ADDED[name]
