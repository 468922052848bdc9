"""What the operator says of a failure, where there is no cluster to ask."""

import pytest

from paddle_operator.api.paddlejob import Failure
from paddle_operator.paddlejob.ends import table
from paddle_operator.run.setback import facts, on_this_machine


@pytest.mark.parametrize(
    ("text", "here"),
    [
        ("look at its log: kubectl logs resnet-worker-0 -c paddle", "look at its log: --logs shows it"),
        ("its log (kubectl logs --previous), or", "its log (--logs shows it), or"),
        ("kubectl describe pod shows more", "objects.yaml of --keep DIR shows more"),
        ("raise the limit", "raise the limit"),
        (
            "its log, /mine/workerlog.1: in the container's folder log, unless told",
            "its log, /mine/workerlog.1",
        ),
        (
            "its process 1 with 1 (/tmp/run/pods/0-1/launcher/paddle/workerlog.1)",
            "its process 1 with 1 (workerlog.1)",
        ),
        (
            (
                "look at its log, workerlog.1: in the container's folder log, unless --log_dir says other; "
                "on a volume it outlives the pod"
            ),
            "look at its log, workerlog.1; --keep DIR keeps it",
        ),
    ],
)
def test_nobody_is_sent_to_a_cluster_that_there_is_not(text: str, here: str) -> None:
    assert on_this_machine(text) == here


def test_of_what_can_happen_here_nothing_speaks_of_kubectl() -> None:
    """Nodes and images are not imitated; what ends or waits because of them is not seen here."""
    known = {"pod": "p", "container": "c"}
    told = [one.told(known) for one in (*table().end, *table().waiting) if one.kind not in {"node", "image"}]
    assert [one.next for one in told if "kubectl" in on_this_machine(one.next)] == []


def test_only_what_is_known_is_said() -> None:
    assert facts(Failure(message="m")) == []
    whole = Failure(kind="code", victims="worker 1", next_step="kubectl logs a -c b", message="m")
    assert facts(whole) == [("class", "code"), ("victims", "worker 1"), ("next step", "--logs shows it")]


def test_what_stands_behind_a_command_of_kubectl_stays() -> None:
    said = "look at its log (kubectl logs --previous a-worker-0 -c paddle), or raise runPolicy.backoffLimit"
    assert on_this_machine(said) == "look at its log (--logs shows it), or raise runPolicy.backoffLimit"
