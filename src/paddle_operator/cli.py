"""The command line: thin, and the only place that prints."""

import asyncio
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from . import __version__
from .api.crd import paddle_job_crd
from .api.documents import BadDocument, Resolver
from .api.load import load_jobs
from .api.paddlejob import PaddleJob
from .api.schema_check import Problem
from .api.validate import is_dns_label, not_served
from .log import LogFormat, LogLevel, configure
from .paddlejob.pods import dropped_variables_of
from .paddlejob.render import render as render_job

MOST_LINES = 20

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
    if namespace and not is_dns_label(namespace):
        raise _complaint(f"--namespace: {namespace!r} is no name of a namespace")
    try:
        credentials = load(kubeconfig)
    except ConfigError as error:
        raise _complaint(" ".join(str(error).split())) from None
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
        jobs = load_jobs(_read(file), namespace)
    except UnicodeDecodeError as error:
        raise _complaint(
            f"{file}: byte {error.start + 1} is not UTF-8 text; save the file as UTF-8"
        ) from None
    except OSError as error:
        advice = "name a YAML file, or - for standard input"
        raise _complaint(f"{file}: cannot be read: {error.strerror or error}; {advice}") from None
    except BadDocument as bad:
        raise _complaint(*(f"{_shown_name(file)}: {problem}" for problem in bad.problems)) from None
    if unserved := [(job, problem) for job in jobs for problem in not_served(job)]:
        raise _complaint(*(_line(file, job, problem) for job, problem in unserved))
    for job in jobs:
        if names := dropped_variables_of(job):
            dropped = Problem(
                ", ".join(names), "set by the operator itself; the values in the template are not used"
            )
            typer.echo(f"warning: {_line(file, job, dropped)}", err=True)
    _print_documents([manifest for job in jobs for manifest in render_job(job)])


@app.command()
def crd() -> None:
    """Print the CustomResourceDefinition of PaddleJob.

    To install it: paddle-operator crd | kubectl apply -f -
    """
    _print_documents([paddle_job_crd()])


def _read(file: str) -> str:
    return (sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()).decode()


def _line(file: str, job: PaddleJob, problem: Problem) -> str:
    return f"{_shown_name(file)}: job {job.metadata.name}: {problem}"


def _shown_name(file: str) -> str:
    return "standard input" if file == "-" else file


class _PlainDumper(Resolver, yaml.SafeDumper):
    """For people and simple readers: no aliases, blocks for scripts, quotes where one would misread."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        tag = super().resolve(kind, value, implicit)
        is_text = tag == self.DEFAULT_SCALAR_TAG
        if not is_text:
            return tag
        return yaml.resolver.Resolver.resolve(self, kind, value, implicit)  # type: ignore[no-untyped-call]

    def represent_text(self, text: str) -> yaml.Node:
        return self.represent_scalar(self.DEFAULT_SCALAR_TAG, text, style="|" if "\n" in text else None)


_PlainDumper.add_representer(str, _PlainDumper.represent_text)


def _print_documents(documents: list[dict[str, Any]]) -> None:
    # As bytes: what a terminal claims to be able to show is not our concern.
    text = yaml.dump_all(
        documents,
        Dumper=_PlainDumper,
        sort_keys=False,
        allow_unicode=True,
        explicit_start=True,
        encoding="utf-8",
    )
    typer.echo(text, nl=False)


def _complaint(*lines: str) -> typer.Exit:
    for line in lines[:MOST_LINES]:
        typer.echo(f"error: {line}", err=True)
    if more := lines[MOST_LINES:]:
        typer.echo(f"error: and {len(more)} more", err=True)
    return typer.Exit(2)
