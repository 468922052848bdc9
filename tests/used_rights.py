"""What operators may do, held against what an audit log shows that they did."""

from collections import defaultdict
from datetime import datetime
from pathlib import Path

from audit import Request, read_audit_log
from world import OPERATOR, SECOND_OPERATOR

from paddle_operator.api.rights import FOLLOWED, LEASE

OPERATORS = frozenset({OPERATOR, SECOND_OPERATOR, "system:serviceaccount:paddle-system:paddle-manager-sa"})
# blockOwnerDeletion needs it where OwnerReferencesPermissionEnforcement is on, as here. No request shows it.
SHOWN_BY_NO_REQUEST = {("update", "paddlejobs/finalizers")}


def compare(audit_log: Path) -> tuple[dict[str, str], list[str]]:
    """A table, with a row for each right; and what is wrong: rights that are missing, or that nobody used."""
    everything = read_audit_log(audit_log)
    # The Go operator has the same account, and the tests the same client.
    ours = [one for one in everything if one.user in OPERATORS and one.agent.startswith("paddle-operator/")]
    gone = {one.name: one.at for one in everything if str(one) == "delete namespaces"}
    granted = {(verb, right.resource): right.group for right in (*FOLLOWED, *LEASE) for verb in right.verbs}
    used: dict[tuple[str, str], int] = defaultdict(int)
    for request in ours:
        if request.code not in {401, 403}:
            used[request.verb, request.resource] += 1
    table = {
        f"right: {resource} {verb}": (
            "for blockOwnerDeletion"
            if (verb, resource) in SHOWN_BY_NO_REQUEST
            else f"used {used[verb, resource]}"
        )
        + f" ({group or 'core'})"
        for (verb, resource), group in granted.items()
    }
    wrong = _refused(ours, gone)
    wrong += [f"used, but not granted: {verb} {resource}" for verb, resource in used.keys() - granted.keys()]
    unused = {what for what in granted if not used.get(what)} ^ SHOWN_BY_NO_REQUEST
    wrong += [f"granted, but not used: {verb} {resource}" for verb, resource in sorted(unused)]
    return table, wrong


def _refused(requests: list[Request], namespaces_gone: dict[str, datetime]) -> list[str]:
    """Requests for which a right was missing.

    Only of operators whose rights stay as they are until their namespace goes: those that are installed get
    theirs, and lose them, in the course of a test. Not of creates: a server that does not know a new kind yet
    refuses what that kind shall own, and where a right is missing no job would end.
    """
    return [
        f"refused: {one} in {one.namespace or 'all namespaces'} at {one.at}"
        for one in requests
        if one.code == 403
        and one.verb != "create"
        and one.user in {OPERATOR, SECOND_OPERATOR}
        and not (one.namespace in namespaces_gone and namespaces_gone[one.namespace] < one.at)
    ]
