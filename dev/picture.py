"""Draws docs/run.svg: what `paddle-operator run` shows on a terminal, taken from a real run of an example.

python dev/picture.py examples/02-collective/job.yaml > docs/run.svg
"""

import io
import re
import sys
from collections.abc import Sequence

from rich.console import Console

from paddle_operator.run.command import Options, execute, prepare
from paddle_operator.run.gather import Line
from paddle_operator.run.scene import Scene
from paddle_operator.run.view import draw
from paddle_operator.run.workspace import workspace

WIDTH, HEIGHT = 100, 18
# An image must not fetch fonts from elsewhere.
FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


class Camera:
    """Keeps the last scene in which every rank was training."""

    def __init__(self) -> None:
        self.scene = Scene(())

    def show(self, scene: Scene) -> None:
        pods = [pod for job in scene.jobs for pod in job.pods]
        if pods and all(pod.state == "Running" and "loss" in pod.last_line for pod in pods):
            self.scene = scene

    def say(self, text: str) -> None:
        print(text, file=sys.stderr)

    def print_logs(self, lines: Sequence[Line]) -> None:
        """Not in the picture."""

    def close(self) -> None:
        """Nothing is held."""


def main(file: str) -> None:
    camera = Camera()
    with workspace(None) as place:
        execute(prepare(Options([file])), camera, place)
    console = Console(record=True, width=WIDTH, height=HEIGHT, file=io.StringIO(), force_terminal=True)
    console.print(draw(camera.scene, width=WIDTH, height=HEIGHT))
    print(FONTS.sub("", console.export_svg(title=f"paddle-operator run {file}", unique_id="run")))


if __name__ == "__main__":
    main(*sys.argv[1:])
