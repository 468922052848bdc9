"""Where the scenes of a run are shown: a live picture on a terminal, plain lines elsewhere."""

import os
from collections.abc import Sequence
from typing import Protocol

from rich.console import Console
from rich.live import Live
from rich.text import Text

from .gather import Line
from .lines import Lines
from .metrics import readable
from .scene import Scene
from .view import draw, prefix_style


class Output(Console):
    """rich would end the program when a reader goes away; there may be checkpoints to save."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        # Or Python would complain at its end that the last bytes cannot be written.
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())
        raise BrokenPipeError


class Screen(Protocol):
    def show(self, scene: Scene) -> None: ...

    def say(self, text: str) -> None:
        """A line that stays."""

    def print_logs(self, lines: Sequence[Line]) -> None: ...

    def close(self) -> None: ...


class PlainScreen:
    def __init__(self, console: Console, *, logs: bool) -> None:
        self._console = console
        self._wants_logs = logs
        self._lines = Lines()

    def show(self, scene: Scene) -> None:
        for text in self._lines.changes(scene):
            self.say(text)

    def say(self, text: str) -> None:
        self._print(Text(text))

    def print_logs(self, lines: Sequence[Line]) -> None:
        if self._wants_logs and lines:
            # One print for all: a page of its own for each would take longer than the job.
            page = Text()
            for line in lines:
                page.append(f"{line.source} | ", prefix_style(line.index)).append(f"{readable(line.text)}\n")
            self._print(page, end="")

    def close(self) -> None:
        """Nothing is held."""

    def _print(self, text: Text, end: str = "\n") -> None:
        self._console.print(text, soft_wrap=True, end=end)


class TerminalScreen(PlainScreen):
    """What is said, and logs, scroll by above the picture."""

    def __init__(self, console: Console, *, logs: bool) -> None:
        super().__init__(console, logs=logs)
        self._live = Live(console=console, auto_refresh=False)
        self._live.start()

    def show(self, scene: Scene) -> None:
        width, height = self._console.size
        self._live.update(draw(scene, width=width, height=height - 1), refresh=True)

    def close(self) -> None:
        self._live.stop()


def screen_for(console: Console, *, logs: bool) -> Screen:
    # Not console.is_terminal: FORCE_COLOR wants colours in a CI log, not a picture that is redrawn.
    can_redraw = console.file.isatty() and not console.is_dumb_terminal
    return (TerminalScreen if can_redraw else PlainScreen)(console, logs=logs)
