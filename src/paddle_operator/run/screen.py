"""Where the scenes of a run are shown: a live picture on a terminal, plain lines elsewhere."""

from collections.abc import Iterable
from typing import Protocol

from rich.console import Console
from rich.live import Live
from rich.text import Text

from .gather import Line
from .lines import Lines
from .metrics import readable
from .scene import Scene
from .view import draw, prefix_style


class Screen(Protocol):
    def show(self, scene: Scene) -> None: ...

    def say(self, text: str) -> None:
        """A line that stays."""

    def print_logs(self, lines: Iterable[Line]) -> None: ...

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
        self._console.print(Text(text), soft_wrap=True)

    def print_logs(self, lines: Iterable[Line]) -> None:
        for line in lines if self._wants_logs else ():
            prefix = Text(f"{line.pod} | ", style=prefix_style(line.index))
            self._console.print(prefix + readable(line.text), soft_wrap=True)

    def close(self) -> None:
        """Nothing is held."""


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
    return (TerminalScreen if console.is_terminal else PlainScreen)(console, logs=logs)
