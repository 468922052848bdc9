"""What the operator may do to a cluster, and why: the manifests grant exactly this, and so do the tests."""

from collections.abc import Iterable
from dataclasses import dataclass

from .meta import Manifest
from .names import GROUP

# That of the Go operator: while one of both leads, the other stands by.
LEASE_NAME = "b2a304f2.paddlepaddle.org"

_KEEP = ("get", "list", "watch", "create", "patch", "delete")


@dataclass(frozen=True)
class Right:
    group: str
    resource: str
    verbs: tuple[str, ...]
    why: str
    names: tuple[str, ...] = ()
    """The only objects meant, by name; empty: all."""

    @property
    def rule(self) -> Manifest:
        rule: Manifest = {"apiGroups": [self.group], "resources": [self.resource], "verbs": [*self.verbs]}
        return {**rule, "resourceNames": [*self.names]} if self.names else rule


# In each namespace that it follows.
FOLLOWED = (
    Right(
        GROUP,
        "paddlejobs",
        ("get", "list", "watch", "patch", "delete"),
        "follow them; take off the Go operator's finalizer; delete what outlived its ttlSecondsAfterFinished",
    ),
    Right(GROUP, "paddlejobs/status", ("patch",), "tell how far a job is"),
    Right(
        GROUP,
        "paddlejobs/finalizers",
        ("update",),
        "own pods, services and config maps where owners are checked (OwnerReferencesPermissionEnforcement)",
    ),
    Right("", "pods", _KEEP, "train"),
    Right("", "services", _KEEP, "give each pod a name (intranet: Service)"),
    Right("", "configmaps", _KEEP, "tell the pods of a try about each other"),
    Right("", "events", ("create",), "tell what happened to a job"),
)

# In the operator's own namespace.
LEASE = (
    # Nobody can be held to a name that does not exist yet.
    Right("coordination.k8s.io", "leases", ("create",), "make the lease of the leader"),
    Right(
        "coordination.k8s.io",
        "leases",
        ("get", "patch"),
        "hold it: of several operators one leads",
        (LEASE_NAME,),
    ),
)


def rules(rights: Iterable[Right]) -> list[Manifest]:
    return [right.rule for right in rights]
