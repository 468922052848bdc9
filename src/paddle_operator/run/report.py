"""What is said at the end of a run, and its exit code."""

from pathlib import Path

from rich.console import Console
from rich.text import Text

from paddle_operator.api.meta import Key, find_condition
from paddle_operator.api.names import FAILED
from paddle_operator.api.paddlejob import PaddleJob, Phase
from paddle_operator.local.logs import log_file, process_logs
from paddle_operator.local.support import INSTALL_PADDLE
from paddle_operator.paddlejob.restarts import used_in_words

from .culprit import farewell
from .lines import verdict
from .metrics import readable
from .scene import JobScene, process_name
from .session import End, Result
from .setback import facts, on_this_machine
from .view import loss_table

SHOWN_TRIES = 5
FAILURE, TIMEOUT, INTERRUPT = 1, 124, 130
# What a log says, and what helps.
REMEDIES = {
    "No module named 'paddle'": f"PaddlePaddle is not installed here; {INSTALL_PADDLE}",
    "can't open file": "no image is pulled: commands run in the folder of the YAML file; if the script is "
    "elsewhere, add --image 'NAME=@FOLDER'",
    "is not a attribute of DistributedStrategy": "protobuf is too new; pip install 'protobuf<7'",
}


def exit_code(result: Result) -> int:
    if result.end is End.INTERRUPTED:
        return INTERRUPT
    if result.end is End.TIMED_OUT:
        return TIMEOUT
    return 0 if all(job.status.phase == Phase.COMPLETED for job in result.jobs) else FAILURE


def report(result: Result, console: Console, logs: Path) -> None:
    scenes = {scene.name: scene for scene in result.scene.jobs}
    for job in result.jobs:
        scene = scenes[str(job.metadata.key)]
        console.print(Text(_verdict(job, scene, result.end), style=_style(job)), soft_wrap=True)
        for name, text in _details(job, scene):
            console.print(Text(f"  {name:<9}  {readable(text)}"), soft_wrap=True)
        if scene.curve:
            console.print(loss_table(scene.curve))
        if job.status.phase == Phase.FAILED:
            _show_culprit(job, console, logs)


def _verdict(job: PaddleJob, scene: JobScene, end: End) -> str:
    name, after = str(job.metadata.key), f"after {scene.seconds:.1f} s"
    if job.status.phase == Phase.COMPLETED:
        return f"{name} Completed {after}"
    if job.status.phase == Phase.FAILED:
        return f"{name} Failed {after}: {_reason(job)}"
    before = f"it was {verdict(scene) or 'not started'}"
    if end is End.INTERRUPTED:
        return f"{name} stopped by you {after}; {before}"
    return f"{name} out of time (--timeout) {after}; {before}; --logs shows what its pods say"


def _reason(job: PaddleJob) -> str:
    """The condition would tell restarts and the next step in the same line; they have lines of their own."""
    failure, condition = job.status.failure, find_condition(job.status.conditions, FAILED)
    told = (failure.message if failure else "") or (condition.message if condition else "")
    return readable(on_this_machine(told)) or "no reason is known"


def _details(job: PaddleJob, scene: JobScene) -> list[tuple[str, str]]:
    """Of its failure; and why it was restarted, if it was, also when it has completed."""
    status = job.status
    failed = status.failure if status.phase == Phase.FAILED else None
    rows = facts(failed) if failed is not None else []
    if status.restarts:
        used = used_in_words(job, status)
        rows.append(("restarts", f"{status.restarts}: {used}"))
    earlier = [one for one in scene.failures if failed is None or one.attempt != failed.attempt]
    if len(earlier) > SHOWN_TRIES:
        rows.append(("", f"{len(earlier) - SHOWN_TRIES} failures before these"))
    return rows + [(f"try {one.attempt}", on_this_machine(one.message)) for one in earlier[-SHOWN_TRIES:]]


def _style(job: PaddleJob) -> str:
    return {Phase.COMPLETED: "green", Phase.FAILED: "bold red"}.get(
        Phase(job.status.phase or "Pending"), "yellow"
    )


def _show_culprit(job: PaddleJob, console: Console, logs: Path) -> None:
    failure = job.status.failure
    if failure is None or not failure.container:
        return
    log = log_file(logs, Key(job.metadata.namespace, failure.pod), failure.container)
    lines, who = farewell(log, failure.local_rank, failure.log), f"{failure.pod} (rank {failure.rank})"
    if failure.local_rank is not None and len(process_logs(log)) > 1:
        name = process_name(failure.pod, failure.local_rank)
        who = f"{name} (rank {failure.rank}, local rank {failure.local_rank})"
    console.print(
        f"The last {len(lines)} lines of {who}:" if lines else f"{who} printed nothing.",
        style="bold",
        soft_wrap=True,
    )
    for line in lines:
        console.print(Text(f"  {readable(line)}"), soft_wrap=True)
    text = "\n".join(lines)
    for sign, remedy in REMEDIES.items():
        if sign in text:
            console.print(Text(f"Remedy: {remedy}", style="bold"), soft_wrap=True)
