"""The command line: thin, and the only place that prints."""

import asyncio
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from . import __version__
from .api.crd import paddle_job_crd
from .api.load import BadDocument, load_jobs
from .log import LogFormat, LogLevel, configure
from .paddlejob.render import render as render_job

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    help="Run PaddlePaddle training on Kubernetes.",
)


def main() -> None:
    app()


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        typer.echo(__version__)
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
    log_level: Annotated[LogLevel, typer.Option(help="How much to say.")] = LogLevel.INFO,
    log_format: Annotated[LogFormat, typer.Option(help="For people, or for machines.")] = LogFormat.CONSOLE,
) -> None:
    """Follow the PaddleJobs of a cluster, and make and watch the pods that they need.

    Runs until SIGTERM or Ctrl-C. It may be killed at any moment: it keeps nothing that it cannot see again.
    Install the PaddleJob kind first: paddle-operator crd | kubectl apply -f -
    """
    # Only this command talks to a server; the others start without the weight of it.
    from .app import run_manager  # noqa: PLC0415
    from .kube.config import ConfigError, load  # noqa: PLC0415

    configure(log_level, log_format)
    try:
        credentials = load(kubeconfig)
    except ConfigError as error:
        raise _complaint(str(error)) from None
    asyncio.run(run_manager(credentials, namespace))


@app.command()
def render(
    file: Annotated[
        str, typer.Argument(help="A YAML file with one or more PaddleJobs, or - for standard input.")
    ],
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="The namespace of jobs that name none.")
    ] = "default",
) -> None:
    """Print the objects that a PaddleJob becomes, in the order in which they are made. Needs no cluster.

    The file is checked as the API server would check it. What only a cluster knows stands in angle brackets.
    """
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        jobs = load_jobs(text, namespace)
    except (OSError, UnicodeDecodeError) as error:
        raise _complaint(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    except BadDocument as bad:
        raise _complaint(*(f"{file}: {problem}" for problem in bad.problems)) from None
    _print_documents([manifest for job in jobs for manifest in render_job(job)])


@app.command()
def crd() -> None:
    """Print the CustomResourceDefinition of PaddleJob.

    To install it: paddle-operator crd | kubectl apply -f -
    """
    _print_documents([paddle_job_crd()])


class _PlainDumper(yaml.SafeDumper):
    """Without aliases: a part that occurs twice is written twice, as people and simple readers expect."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def _print_documents(documents: list[dict[str, Any]]) -> None:
    yaml.dump_all(
        documents, sys.stdout, Dumper=_PlainDumper, sort_keys=False, allow_unicode=True, explicit_start=True
    )


def _complaint(*lines: str) -> typer.Exit:
    for line in lines:
        typer.echo(f"error: {line}", err=True)
    return typer.Exit(2)
