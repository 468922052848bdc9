"""What else there is to say to a failure: Paddle's own words, explained.

Where the template sets `terminationMessagePolicy: FallbackToLogsOnError` (on a laptop: always) the end of a
failed container's log is known. It is searched, never shown: a log may hold secrets.
"""

import re
from typing import NamedTuple

import msgspec

from paddle_operator.api.paddlejob import Failure, Mode

from .observed import Observed

NO_SERVERS_IN_PADDLE = (
    "this Paddle has no parameter servers any more: PS jobs need an image with Paddle 3.0.0 or older"
)
PERHAPS_NO_SERVERS = (
    "if its image has Paddle 3.1 or newer: these have no parameter servers, PS jobs need 3.0.0 or older"
)
SERVERS_NOT_AWAITED = (
    "a worker spoke to servers that did not listen yet: Paddle 3.0.0 does not wait for them, so the script "
    "must wait for the ports in PADDLE_PSERVERS_IP_PORT_LIST itself"
)
PROTOBUF_TOO_NEW = (
    "this Paddle cannot read what protobuf 7 writes: install protobuf<7 (Paddle 2.6: protobuf<5)"
)
# From here on the command could not be run at all (126, 127), or a signal ended it.
FIRST_CODE_OF_OTHERS = 126


class _Saying(NamedTuple):
    pattern: re.Pattern[str]
    meaning: str


# As Paddle 3.1.0 and 3.3.1 say it (the first three), then 3.0.0.
_OF_PARAMETER_SERVERS = (
    _Saying(
        re.compile(r"Operator \W*(send|listen_and_serv|distributed_lookup_table)\W* has not been registered"),
        NO_SERVERS_IN_PADDLE,
    ),
    _Saying(re.compile(r"cannot import name 'CommContext'"), NO_SERVERS_IN_PADDLE),
    _Saying(re.compile(r"has no attribute 'DistFleetWrapper'"), NO_SERVERS_IN_PADDLE),
    _Saying(re.compile(r"ret status must be 0 when barrier with table"), SERVERS_NOT_AWAITED),
    _Saying(re.compile(r"push dense param failed"), SERVERS_NOT_AWAITED),
    _Saying(re.compile(r"a_sync_configs is not a attribute"), PROTOBUF_TOO_NEW),
)


def next_step(seen: Observed, failure: Failure, usual: str) -> Failure:
    """With what to do: what Paddle's own words suggest, else what usually helps."""
    said = _last_words(seen) if seen.job.spec.mode is Mode.PS else ""
    meanings = [saying.meaning for saying in _OF_PARAMETER_SERVERS if saying.pattern.search(said)]
    if not meanings and seen.job.spec.mode is Mode.PS and not said and _is_by_program(failure):
        usual = f"{usual}; {PERHAPS_NO_SERVERS}"
    return msgspec.structs.replace(failure, next_step=next(iter(meanings), usual))


def _is_by_program(failure: Failure) -> bool:
    return failure.exit_code is not None and 0 < failure.exit_code < FIRST_CODE_OF_OTHERS


def _last_words(seen: Observed) -> str:
    """Of all training that failed: who is to blame may have said less than its victims."""
    ends = [end for name in seen.own if (end := seen.training_end(name)) is not None]
    return "\n".join(end.message for end in ends if end.exit_code and end.message)
