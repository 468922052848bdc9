"""By which names pods find each other: what the DNS of a cluster knows of services, for their hosts files."""

from dataclasses import dataclass, field

from paddle_operator.api.meta import Key


@dataclass
class Names:
    """The services here are the operator's, one for each pod and called like it."""

    addresses: dict[Key, str] = field(default_factory=dict)
    """Of the pods."""
    services: set[Key] = field(default_factory=set)

    def lines(self, namespace: str) -> list[str]:
        """As a pod of that namespace sees them."""
        found = [(key, self.addresses.get(key)) for key in sorted(self.services)]
        return [f"{address} {_spellings(key, namespace)}" for key, address in found if address is not None]


def _spellings(service: Key, namespace: str) -> str:
    name = f"{service.name}.{service.namespace}"
    short = f"{service.name} " if service.namespace == namespace else ""
    return f"{short}{name} {name}.svc {name}.svc.cluster.local"
