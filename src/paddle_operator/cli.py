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
from .console import complaint, warn
from .manager_command import from_go, manager
from .paddlejob.render import render as render_job
from .run.request import Refused, dropped_variables_in, load, read_sources, refuse_where

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
    # Whatever it was started as: /manager of the image, or python -m.
    app(prog_name="paddle-operator")


def manager_main() -> None:
    """The program /manager of the image: the one command, with options as the Go operator takes them."""
    words = from_go(sys.argv[1:])
    # Of the program as a whole, not of the command.
    sys.argv[1:] = words if words == ["--version"] else ["manager", *words]
    main()


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        typer.echo(paddle_operator.__version__)
        raise typer.Exit


app.command()(manager)


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
        result = run_jobs(options, warn)
    except Refused as refused:
        raise complaint(*refused.lines) from None
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
        raise complaint(*refused.lines) from None
    for line in (*dropped_variables_in(request), *request.passed_over):
        warn(line)
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
        raise complaint(str(error)) from None


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
