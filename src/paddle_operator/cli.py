"""The command line: thin, and the only place that prints."""

import io
import json
import shutil
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

import paddle_operator

from .api.crd import paddle_job_crd
from .api.documents import write_documents
from .api.validate import not_served
from .api.words import is_dns_label
from .log import LogFormat, LogLevel, configure
from .paddlejob.render import render as render_job
from .run.request import Refused, dropped_variables_in, load, read_sources, refuse_where

MOST_LINES = 20
NARROWEST, WIDEST = 60, 100


class OutputFormat(StrEnum):
    JSON = "json"
    YAML = "yaml"


Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE", help="YAML files with PaddleJobs, folders of such, or - for standard input."
    ),
]
Namespace = Annotated[str, typer.Option("--namespace", "-n", help="The namespace of jobs that name none.")]

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    help="Run PaddlePaddle training on Kubernetes.",
)


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # What a terminal cannot show is no reason to end a training.
            stream.reconfigure(errors="replace")
    app()


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        typer.echo(paddle_operator.__version__)
        raise typer.Exit


@app.command()
def manager(
    kubeconfig: Annotated[
        str | None,
        typer.Option(
            help="The cluster's kubeconfig; else $KUBECONFIG, the pod's own account or ~/.kube/config."
        ),
    ] = None,
    namespace: Annotated[
        str, typer.Option(help="Follow the PaddleJobs of this namespace only; left out: of all namespaces.")
    ] = "",
    init_image: Annotated[
        str,
        typer.Option(
            "--initImage",
            "--init-image",
            help="Service mode: an image with sh and nslookup (alpine:3.10, say) that waits in each pod "
            "until the names of its peers resolve. Left out: nobody waits, and Paddle does not need it.",
        ),
    ] = "",
    log_level: Annotated[LogLevel, typer.Option(help="How much to say.")] = LogLevel.INFO,
    log_format: Annotated[LogFormat, typer.Option(help="For people, or for machines.")] = LogFormat.CONSOLE,
) -> None:
    """Follow the PaddleJobs of a cluster, and make and watch the pods that they need.

    Runs until SIGTERM or Ctrl-C. It may be killed at any moment: it keeps nothing that it cannot see again.
    Install the PaddleJob kind first: paddle-operator crd | kubectl apply -f -
    """
    # Only this command talks to a server; the others start without the weight of it.
    import asyncio  # noqa: PLC0415

    from .app import run_manager  # noqa: PLC0415
    from .kube.config import ConfigError, load  # noqa: PLC0415
    from .paddlejob.observed import Settings  # noqa: PLC0415

    if namespace and not is_dns_label(namespace):
        raise _complaint(f"--namespace: {namespace!r} is no name of a namespace")
    try:
        credentials = load(kubeconfig)
    except ConfigError as error:
        raise _complaint(" ".join(str(error).split())) from None
    configure(log_level, log_format)
    asyncio.run(run_manager(credentials, namespace, Settings(init_image)))


@app.command()
def run(
    files: Files,
    namespace: Namespace = "default",
    timeout: Annotated[
        str, typer.Option(help="Stop the jobs after this time: 90s, 10m, 1h30m. Left out: never.")
    ] = "",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PATH=VALUE", help="Change the jobs first: spec.worker.replicas=3"),
    ] = None,
    image: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=COMMAND@FOLDER",
            help="What an image stands for on this machine; either part may be left out.",
        ),
    ] = None,
    keep: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep logs and objects in this new folder.")
    ] = None,
    volumes: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where persistent volume claims are. (default: ~/.local/share/paddle-operator/volumes)",
        ),
    ] = None,
    logs: Annotated[bool, typer.Option("--logs", help="Show all that the pods print.")] = False,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="REGEX",
            help="How scripts tell their loss, with groups named loss and step. (default: step=1 loss=0.5)",
        ),
    ] = None,
    output: Annotated[
        OutputFormat | None, typer.Option("--output", "-o", help="Print the jobs as they ended to stdout.")
    ] = None,
) -> None:
    """Run PaddleJobs on this machine, without a cluster, and watch them train.

    The same operator as on a cluster makes the pods; here they are processes, which run in this Python
    environment (images are not pulled). Ctrl-C stops the jobs and leaves nothing behind; a second one kills.

    Exit code: 0 all jobs Completed, 1 a job failed, 2 bad input, 124 --timeout, 130 Ctrl-C.

    Try: paddle-operator run examples/02-collective/job.yaml
    """
    # Only this command draws and starts processes; the others start without the weight of it.
    from .run.command import Options, run_jobs  # noqa: PLC0415
    from .run.report import exit_code  # noqa: PLC0415

    options = Options(
        files, namespace, timeout, settings or [], image or [], keep, volumes, logs, metric,
        on_stderr=output is not None,
    )  # fmt: skip
    try:
        result = run_jobs(options, _warn)
    except Refused as refused:
        raise _complaint(*refused.lines) from None
    if output is not None:
        _print_objects(list(result.manifests), output)
    raise typer.Exit(exit_code(result))


@app.command()
def render(files: Files, namespace: Namespace = "default") -> None:
    """Print the objects that PaddleJobs become, in the order in which they are made. Needs no cluster.

    The files are checked as the API server would check them. What only a cluster knows stands in angle
    brackets.
    """
    try:
        request = load(read_sources(files), namespace)
        refuse_where(request, not_served)
    except Refused as refused:
        raise _complaint(*refused.lines) from None
    for line in (*dropped_variables_in(request), *request.passed_over):
        _warn(line)
    _print_documents([manifest for _, job in request.jobs for manifest in render_job(job)])


@app.command()
def crd() -> None:
    """Print the CustomResourceDefinition of PaddleJob.

    To install it: paddle-operator crd | kubectl apply -f -
    """
    _print_documents([paddle_job_crd()])


# -9 is no option, but what Python calls the end by signal 9.
@app.command("explain-exit", context_settings={"ignore_unknown_options": True})
def explain_exit(
    word: Annotated[
        str | None,
        typer.Argument(
            metavar="CODE|REASON",
            show_default=False,
            help="An exit code, 0 to 255, or the reason of a pod or container (OOMKilled, Evicted, "
            "ImagePullBackOff), in any case. Left out: the whole table.",
        ),
    ] = None,
) -> None:
    """Explain how a process or pod ended, or why it waits: what it means, what it counts against, what to do.

    Codes are those of Paddle's launcher (247), its legacy launcher (101) and plain scripts (137). A pod's
    reason goes before its code, because it tells more; the operator itself goes by the same table.

    Try: paddle-operator explain-exit 247

    Which code and reason it was: kubectl get pdj NAME -o jsonpath={.status.failure}
    """
    # The table is read by this command and by jobs that fail.
    from .paddlejob.explain import NotKnownError, explain, explain_all  # noqa: PLC0415

    width = max(NARROWEST, min(shutil.get_terminal_size((WIDEST, 0)).columns, WIDEST))
    try:
        typer.echo(explain_all(width) if word is None else explain(word, width))
    except NotKnownError as error:
        raise _complaint(str(error)) from None


def _warn(line: str) -> None:
    typer.echo(f"warning: {line}", err=True)


def _print_documents(documents: list[dict[str, Any]]) -> None:
    # As bytes: what a terminal claims to be able to show is not our concern.
    typer.echo(write_documents(documents), nl=False)


def _print_objects(documents: list[dict[str, Any]], form: OutputFormat) -> None:
    """As kubectl: several objects are a list in JSON, and documents of their own in YAML."""
    if form is OutputFormat.YAML:
        _print_documents(documents)
        return
    several = {"apiVersion": "v1", "kind": "List", "items": documents}
    typer.echo(json.dumps(documents[0] if len(documents) == 1 else several, indent=2))


def _complaint(*lines: str) -> typer.Exit:
    for line in lines[:MOST_LINES]:
        typer.echo(f"error: {line}", err=True)
    if more := lines[MOST_LINES:]:
        typer.echo(f"error: and {len(more)} more", err=True)
    return typer.Exit(2)
