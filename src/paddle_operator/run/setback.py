"""What is said of a try that failed: the words of status.failure, for a machine that has no cluster."""

import re

from paddle_operator.api.paddlejob import Failure

# The operator names kubectl where it tells people what to do next; here other things show the same.
_WHERE_LOGS_ARE = r": in the container's folder log, [^;]*(?:; on a volume it outlives the pod)?"
_HERE = (
    (re.compile(r"kubectl logs( --previous)?( \S+ -c [-a-zA-Z0-9]+)?"), "--logs shows it"),
    (re.compile(r"kubectl describe pod( [-a-z0-9]+-\d+)?"), "objects.yaml of --keep DIR"),
    # The folder of the launcher is one of ours, and gone with the pod. Where a script has named another one,
    # that is a folder of this machine, and stays.
    (re.compile(r"[^\s(]*/launcher/[^\s/]+/(?=workerlog\.\d)"), ""),
    (re.compile(rf"(?<= )(/\S+/workerlog\.\d+( first)?){_WHERE_LOGS_ARE}"), r"\1"),
    (re.compile(_WHERE_LOGS_ARE), "; --keep DIR keeps it"),
)


def on_this_machine(text: str) -> str:
    for pattern, instead in _HERE:
        text = pattern.sub(instead, text)
    return text


def facts(failure: Failure) -> list[tuple[str, str]]:
    """What there is to know besides its message, each with a name."""
    known = (
        ("class", failure.kind),
        ("victims", failure.victims),
        ("next step", on_this_machine(failure.next_step)),
    )
    return [(name, text) for name, text in known if text]
