"""How a component is started and waited for; when it does not come, the end of its log tells why."""

import time
from collections.abc import Callable, Sequence
from typing import NoReturn

from testbed import processes
from testbed.components import Layout
from testbed.errors import ControlPlaneError, tail
from testbed.progress import Progress

TIMEOUT_SECONDS = 120.0
POLL_SECONDS = 0.05


def start(
    component: str,
    command: Sequence[str],
    layout: Layout,
    is_ready: Callable[[], bool],
    *,
    most_starts: int = 1,
) -> None:
    """Ready on return. One that ends is started again, as often as it may be, as systemd would do it."""
    child = _spawn(component, command, layout)
    starts = 1

    def is_ready_at_last() -> bool:
        nonlocal child, starts
        if is_ready():
            return True
        if not processes.is_running(child):
            if starts == most_starts:
                _give_up("ended" if starts == 1 else f"ended {starts} times", component, layout)
            child = _spawn(component, command, layout)
            starts += 1
        return False

    wait(component, is_ready_at_last, component, layout)


def wait(title: str, holds: Callable[[], bool], component: str, layout: Layout) -> None:
    """Until it holds; the component is the one whose log will tell why it does not."""
    progress = Progress(title, "starting")
    try:
        while not holds():
            if progress.elapsed_seconds > TIMEOUT_SECONDS:
                _give_up(f"was not ready after {TIMEOUT_SECONDS:.0f} s", component, layout)
            progress.tick()
            time.sleep(POLL_SECONDS)
    except BaseException:
        progress.stop()
        raise
    progress.done("ready")


def _spawn(component: str, command: Sequence[str], layout: Layout) -> int:
    try:
        return processes.start(component, list(command), layout.folder, layout.log(component))
    except OSError as error:
        raise ControlPlaneError(
            f"cannot run {command[0]}: {error}", remedy="remove that file and run `python -m testbed build`"
        ) from error


def _give_up(problem: str, component: str, layout: Layout) -> NoReturn:
    name, log = layout.folder.name, layout.log(component)
    raise ControlPlaneError(
        f"{component} of the testbed {name!r} {problem}; the end of {log}:\n{tail(log)}",
        remedy=f"see the log; `python -m testbed down --name {name}` removes everything of this testbed",
    )
