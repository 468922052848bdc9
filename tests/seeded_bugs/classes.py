"""The classes of bugs that operators have had, each with a real case."""

from dataclasses import dataclass

_HOST = "https://github.com"


@dataclass(frozen=True)
class BugClass:
    number: int
    title: str
    cases: tuple[str, ...]
    """Repository, then `issues` or `pull` or a file, on GitHub."""
    absent: str = ""
    """Why it cannot happen here today; empty: it can, so some bug of ours stands for it."""

    @property
    def links(self) -> dict[str, str]:
        """Of each case, how it is called and where it is told."""
        return {_called(case): f"{_HOST}/{case}" for case in self.cases}


def _called(case: str) -> str:
    owner, repository, *rest = case.split("/")
    number = rest[-1]
    return f"{owner}/{repository}#{number}" if number.isdigit() else f"{owner}/{repository}"


_ALL = (
    BugClass(1, "stale cache: something is made twice", ("ray-project/kuberay/issues/715",)),
    BugClass(
        2,
        "what was expected expires while the watch is late: more pods than asked for",
        ("kubernetes/kubernetes/issues/129795",),
    ),
    BugClass(
        3,
        "what was expected of a deleted job is expected of its namesake",
        ("kubeflow/trainer/issues/1306",),
    ),
    BugClass(
        4,
        "random names and a stale cache: duplicates, then all is deleted",
        ("scylladb/scylla-operator/issues/2492",),
    ),
    BugClass(
        5,
        "a name is used again, and nobody looks at the UID",
        ("k8ssandra/cass-operator/issues/118", "volcano-sh/volcano/issues/5331"),
    ),
    BugClass(
        6,
        "a stale read after a restart deletes what lives",
        ("instaclustr/cassandra-operator/issues/407",),
    ),
    BugClass(7, "a crash between two writes is never repaired", ("rabbitmq/cluster-operator/issues/782",)),
    BugClass(
        8, "what is under way is taken for done after a crash", ("eclipse-theia/theia-cloud/issues/221",)
    ),
    BugClass(
        9,
        "an event that was missed is never made up for",
        ("rabbitmq/cluster-operator/issues/758",),
    ),
    BugClass(
        10,
        "a status is lost by a conflict",
        ("kubeflow/trainer/pull/3009", "kubeflow/mpi-operator/issues/607"),
    ),
    BugClass(
        11,
        "a finished pod is collected before it is counted: the job runs again",
        ("kubeflow/trainer/issues/1186",),
    ),
    BugClass(
        12,
        "a job that is over makes its children again",
        ("kubeflow/trainer/issues/3737", "kubeflow/trainer/issues/1426"),
    ),
    BugClass(
        13,
        "a finalizer is never taken off",
        (
            "kubernetes/kubernetes/issues/108645",
            "ray-project/kuberay/issues/3388",
            "ray-project/ray/issues/21684",
        ),
    ),
    BugClass(14, "called finished before all is counted", ("kubernetes/kubernetes/pull/109486",)),
    BugClass(
        15,
        "410 Gone is ignored, or asked for in a loop",
        ("zalando-incubator/kopf/pull/8", "kr8s-org/kr8s/pull/478", "apache/airflow/pull/30425"),
    ),
    BugClass(16, "its own status write wakes it, in a hot loop", ("pravega/zookeeper-operator/issues/389",)),
    BugClass(
        17,
        "events without bound",
        ("kubernetes/kubernetes/issues/47366", "kubernetes-sigs/karpenter/issues/2071"),
    ),
    BugClass(
        18,
        "a name of more than 63 characters, or that DNS does not take, is tried for ever",
        ("kubeflow/trainer/issues/1101", "kubeflow/trainer/issues/1745"),
    ),
    BugClass(
        19,
        "jobs of one name in two namespaces are mixed up",
        ("kubeflow/trainer/pull/1545", "kubernetes-sigs/jobset/issues/210"),
    ),
    BugClass(
        20,
        "one object that nobody thought of stops the whole operator",
        ("volcano-sh/volcano/issues/4543", "volcano-sh/volcano/issues/2417"),
    ),
    BugClass(
        21, "that something was removed does not reach the children", ("k8ssandra/cass-operator/issues/330",)
    ),
    BugClass(
        22,
        "no right to the finalizers of the owner, which blockOwnerDeletion takes",
        ("operator-framework/operator-sdk/issues/4020",),
    ),
    BugClass(
        23,
        "what a quota or an admission policy refuses leaves an empty status",
        ("PaddleFlow/paddle-operator/issues/43", "kubeflow/trainer/issues/2351"),
    ),
    BugClass(
        24,
        "a timer is lost, or a clock is wrong",
        ("kubernetes/kubernetes/issues/107226", "knative/serving/issues/561"),
    ),
    BugClass(
        25,
        "two leaders act",
        ("kubernetes/kubernetes/issues/23731", "cilium/cilium/pull/42920"),
    ),
    BugClass(
        26,
        "a status that flaps",
        ("kubernetes-sigs/kueue/pull/522", "ray-project/kuberay/pull/1583"),
    ),
    BugClass(
        27,
        "every pod of the cluster is cached, until memory ends",
        ("ray-project/kuberay/issues/4625", "flyteorg/flyte/pull/7837"),
    ),
    BugClass(
        28,
        "what becomes of a PodGroup is not seen, so pods are never made",
        ("kubeflow/trainer/issues/1729",),
        absent="no PodGroup is made yet: a job that asks for a gang is told that it is not served",
    ),
    BugClass(29, "a delete is repeated for ever, of what is not there", ("kubeflow/trainer/issues/997",)),
    BugClass(
        30,
        "it meddles with an object, or a finalizer, of somebody else",
        ("kubernetes/kubernetes/pull/124798",),
    ),
    BugClass(
        31,
        "a create has succeeded and is not remembered: a second one, or a leak",
        ("Kong/kong-operator/issues/4649",),
    ),
    BugClass(
        32,
        "a webhook in the way of pods does not answer, and most creates fail",
        ("volcano-sh/volcano/blob/master/docs/user-guide/how_to_tune_volcano_performance.md",),
        absent="no webhook is ours; what becomes of a job whose pods another's refuses is class 23",
    ),
)

CLASSES = {one.number: one for one in _ALL}
