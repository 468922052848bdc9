"""The command `manager`: its options, as words of a command line or as variables of the environment."""

import gc
import re
import socket
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .api.rights import LEASE_NAME
from .api.words import is_dns_label
from .console import complaint, warn
from .log import LogFormat, LogLevel, configure, import_without_rich

if TYPE_CHECKING:
    from .kube.config import Credentials
    from .manager import Election
    from .runtime.lease import LeaseTiming
    from .serve.endpoints import Address

PREFIX = "PADDLE_OPERATOR_"
VOLCANO = "volcano"


def _option(*names: str, help: str, panel: str, variable: str = "", **more: Any) -> Any:  # noqa: A002
    variable = variable or names[0].removeprefix("--").replace("-", "_").upper()
    return typer.Option(
        *names, help=help, rich_help_panel=panel, envvar=PREFIX + variable, show_envvar=False, **more
    )


WHAT, LEADING, SERVED, LOGS = "What it follows, and how", "Which of several leads", "Addresses", "Logs"

Kubeconfig = Annotated[
    str | None,
    typer.Option(
        help="The cluster's kubeconfig; else $KUBECONFIG, the pod's own account or ~/.kube/config.",
        rich_help_panel=WHAT,
    ),
]
Namespaces = Annotated[
    str,
    _option(
        "--namespace",
        help="Follow the PaddleJobs of this namespace only, or of several: team-a,team-b. Left out: of all.",
        panel=WHAT,
    ),
]
Workers = Annotated[
    int,
    _option(
        "--workers",
        help="How many jobs are looked at at the same time, in each namespace.",
        panel=WHAT,
        min=1,
        max=1000,
    ),
]
InitImage = Annotated[
    str,
    _option(
        "--initImage",
        "--init-image",
        help="Service mode: an image with sh and nslookup (alpine:3.10, say) that waits in each pod "
        "until the names of its peers resolve. Left out: nobody waits, and Paddle does not need it.",
        panel=WHAT,
        variable="INIT_IMAGE",
    ),
]
Scheduling = Annotated[
    str,
    _option(
        "--scheduling",
        help="volcano: place the pods of a job together or not at all. Not served yet: a warning here, and a "
        "condition on each job.",
        panel=WHAT,
    ),
]
EtcdServer = Annotated[
    str,
    _option(
        "--etcd-server",
        help="Where elastic jobs meet. Not served yet: a warning here, and a condition on elastic jobs.",
        panel=WHAT,
    ),
]
LeaderElect = Annotated[
    bool,
    _option(
        "--leader-elect/--no-leader-elect",
        help="Lead only while holding a Lease, and stand by otherwise: for more than one manager, and for "
        "upgrades without a gap.",
        panel=LEADING,
        variable="LEADER_ELECT",
    ),
]
LeaseName = Annotated[
    str,
    _option("--lease-name", help="The name of the Lease; by default that of the Go operator.", panel=LEADING),
]
LeaseNamespace = Annotated[
    str,
    _option("--lease-namespace", help="Where the Lease is; left out: in the pod's own.", panel=LEADING),
]
LeaseDuration = Annotated[
    str,
    _option(
        "--lease-duration",
        help="How long a standby waits for a leader that does not renew. As 8s or 1m.",
        panel=LEADING,
    ),
]
RenewDeadline = Annotated[
    str,
    _option(
        "--lease-renew-deadline",
        help="How long a leader goes on without having renewed; less than the duration.",
        panel=LEADING,
    ),
]
RetryPeriod = Annotated[
    str,
    _option(
        "--lease-retry-period",
        help="How often a leader renews. A standby looks twice as often.",
        panel=LEADING,
    ),
]
MetricsAddress = Annotated[
    str,
    _option("--metrics-bind-address", help="Where /metrics is served; 0: nowhere.", panel=SERVED),
]
HealthAddress = Annotated[
    str,
    _option(
        "--health-probe-bind-address",
        help="Where /healthz and /readyz are served; 0: nowhere.",
        panel=SERVED,
    ),
]
Level = Annotated[LogLevel, _option("--log-level", help="How much to say.", panel=LOGS)]
Format = Annotated[LogFormat, _option("--log-format", help="For people, or for machines.", panel=LOGS)]


def manager(
    kubeconfig: Kubeconfig = None,
    namespace: Namespaces = "",
    workers: Workers = 8,
    init_image: InitImage = "",
    scheduling: Scheduling = "",
    etcd_server: EtcdServer = "",
    leader_elect: LeaderElect = False,
    lease_name: LeaseName = LEASE_NAME,
    lease_namespace: LeaseNamespace = "",
    lease_duration: LeaseDuration = "8s",
    lease_renew_deadline: RenewDeadline = "5s",
    lease_retry_period: RetryPeriod = "2s",
    metrics_bind_address: MetricsAddress = ":8080",
    health_probe_bind_address: HealthAddress = ":8081",
    log_level: Level = LogLevel.INFO,
    log_format: Format = LogFormat.CONSOLE,
) -> None:
    """Follow the PaddleJobs of a cluster, and make and watch the pods that they need.

    Runs until SIGTERM or Ctrl-C. It may be killed at any moment: it keeps nothing that it cannot see again.
    Install the PaddleJob kind first: paddle-operator crd | kubectl apply -f -

    Options may also be variables: PADDLE_OPERATOR_LEASE_DURATION=8s is --lease-duration 8s.

    In a cluster it runs by itself: kubectl apply -f deploy/v1/crd.yaml -f deploy/v1/operator.yaml

    Try: paddle-operator manager --namespace default --metrics-bind-address 127.0.0.1:8080
    """
    # Only this command talks to a server; the others start without the weight of it.
    import asyncio  # noqa: PLC0415

    with _without_garbage_collection():
        import_without_rich()
        from .kube.config import ConfigError, load  # noqa: PLC0415
        from .manager import Options, run_manager  # noqa: PLC0415
        from .paddlejob.observed import Settings  # noqa: PLC0415
        from .serve.endpoints import CannotListen  # noqa: PLC0415

    namespaces = _namespaces(namespace)
    if scheduling not in {"", VOLCANO}:
        raise complaint(f"--scheduling: {scheduling!r} is not known; {VOLCANO} is, or leave it out")
    addresses = {
        "metrics_address": _address("--metrics-bind-address", metrics_bind_address),
        "health_address": _address("--health-probe-bind-address", health_probe_bind_address),
    }
    timing = _timing(lease_duration, lease_renew_deadline, lease_retry_period)
    try:
        credentials = load(kubeconfig)
    except ConfigError as error:
        raise complaint(" ".join(str(error).split())) from None
    configure(log_level, log_format)
    _warn_of_what_is_not_served(scheduling, etcd_server)
    election = _election(credentials, lease_namespace, lease_name, timing) if leader_elect else None
    options = Options(namespaces, Settings(init_image, scheduling), workers, election, **addresses)
    try:
        asyncio.run(run_manager(credentials, options))
    except CannotListen as error:
        raise complaint(
            f"cannot listen on {error}; choose another address by --metrics-bind-address and "
            "--health-probe-bind-address, or 0 for none"
        ) from None


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """What is loaded stays: the collector need not go through it, neither now nor again and again later."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _namespaces(text: str) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    for name in found:
        if not is_dns_label(name):
            raise complaint(
                f"--namespace: {name!r} is no name of a namespace; use lower-case letters, digits and dashes"
            )
    if text and not found:
        raise complaint(f"--namespace: {text!r} names none; leave it out to follow all namespaces")
    return found or ("",)


def _address(option: str, text: str) -> "Address | None":
    from .serve.endpoints import Address, BadAddress  # noqa: PLC0415

    try:
        return Address.parse(text)
    except BadAddress as error:
        raise complaint(f"{option}: {error}") from None


def _timing(duration: str, renew_deadline: str, retry_period: str) -> "LeaseTiming":
    from .run.duration import BadDuration, seconds  # noqa: PLC0415
    from .runtime.lease import LeaseTiming  # noqa: PLC0415

    try:
        timing = LeaseTiming(
            seconds(duration, "--lease-duration"),
            seconds(renew_deadline, "--lease-renew-deadline"),
            seconds(retry_period, "--lease-retry-period"),
        )
    except BadDuration as error:
        raise complaint(str(error)) from None
    if not (timing.duration >= 1 and timing.duration > timing.renew_deadline > timing.retry_period > 0):
        raise complaint(
            f"--lease-duration ({duration}) has to be longer than --lease-renew-deadline ({renew_deadline}), "
            f"and that longer than --lease-retry-period ({retry_period}); the duration is a second or more"
        )
    return timing


def _election(credentials: "Credentials", namespace: str, name: str, timing: "LeaseTiming") -> "Election":
    from .api.meta import Key  # noqa: PLC0415
    from .manager import Election  # noqa: PLC0415

    # In a pod the host has the pod's name; its container may be restarted, so more is needed.
    identity = f"{socket.gethostname()}_{uuid.uuid4()}"
    return Election(Key(namespace or credentials.namespace, name), identity, timing)


def _warn_of_what_is_not_served(scheduling: str, etcd_server: str) -> None:
    import structlog  # noqa: PLC0415

    log = structlog.get_logger()
    if scheduling:
        log.warning("gang scheduling is not served yet, pods are placed one by one", scheduling=scheduling)
    if etcd_server:
        log.warning("elastic training is not served yet, such jobs are not started", etcd_server=etcd_server)


_GO_FLAG = re.compile(r"-?-(?P<name>[A-Za-z][\w-]+)(?:=(?P<value>.*))?")
_ZAP = re.compile(r"--?zap-")
_GO_BOOLEANS = {"true": "--", "t": "--", "1": "--", "false": "--no-", "f": "--no-", "0": "--no-"}


def from_go(words: Sequence[str]) -> list[str]:
    """Options as Go programs take them: -namespace=x is --namespace=x, and a switch may have a value.

    Those of the Go operator's log, which this one does not have, are passed over.
    """
    known, rest = [], [*words]
    while rest:
        word = rest.pop(0)
        if not _ZAP.match(word):
            known.append(_from_go(word))
            continue
        warn(f"{word} is passed over: see --log-level and --log-format")
        if "=" not in word and not word.endswith("zap-devel") and rest and not rest[0].startswith("-"):
            rest.pop(0)  # its value
    return known


def _from_go(word: str) -> str:
    flag = _GO_FLAG.fullmatch(word)
    if flag is None:
        return word
    name, value = flag["name"], flag["value"]
    if name == "leader-elect" and value is not None and value.lower() in _GO_BOOLEANS:
        return f"{_GO_BOOLEANS[value.lower()]}{name}"
    return f"--{name}" if value is None else f"--{name}={value}"
