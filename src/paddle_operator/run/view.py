"""A run on a terminal: what `rich.live.Live` shows, and the table at the end.

Every row is cropped and none is wrapped, so that the height is known before anything is drawn. What scripts
print goes through `readable` into `Text`, which obeys neither terminal codes nor rich's markup.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import TypeVar

from rich.bar import Bar
from rich.console import Group, JustifyMethod, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from .curve import Scale, chart, evenly, loss_text, spark
from .metrics import readable
from .scene import JobScene, Measurement, PodScene, ProcessScene, Scene, process_name
from .setback import facts, on_this_machine

INDENT = 2
ROOMY = 14  # from this many rows on, the parts of a job stand apart
ROOM_FOR_CHART, ROOM_FOR_SPARK, ROOM_FOR_SETBACK = 10, 4, 8
LOWEST_CHART, HIGHEST_CHART = 5, 10
WIDEST_CHART, WIDEST_BAR = 80, 32

STYLES = {
    "Pending": "yellow",
    "Starting": "yellow",
    "Running": "cyan",
    "Restarting": "yellow",
    "Completed": "green",
    "Succeeded": "green",
    "Failed": "bold red",
    "Terminating": "magenta",
}
NO_PHASE = "New"
SIGNS = {"Completed": "✓", "Failed": "✗"}
# No red, which means failure.
PREFIX_STYLES = ("cyan", "magenta", "green", "yellow", "blue", "bright_cyan", "bright_magenta")

Item = TypeVar("Item")


@dataclass(frozen=True)
class Part:
    drawing: RenderableType
    rows: int


BLANK = Part(Text(), 1)


def draw(scene: Scene, *, width: int, height: int) -> RenderableType:
    """The whole scene, never wider than `width`, never higher than `height`."""
    if height < 1:
        return Group()
    jobs, others = _most_urgent(scene.jobs, height, lambda job: (job.phase != "Failed", job.finished))
    rest = _rest("jobs", [job.phase or NO_PHASE for job in others], is_all=not jobs)
    room = height - sum(part.rows for part in rest)
    parts: list[Part] = []
    for place, job in enumerate(jobs):
        share = room // (len(jobs) - place)
        mine = _job(job, width, share, is_first=place == 0)
        room -= sum(part.rows for part in mine)
        parts += mine
    return Group(*(part.drawing for part in parts + rest))


def loss_table(curve: Sequence[Measurement], rows: int = 8) -> RenderableType:
    """How the loss went, in evenly chosen steps: the first and the last are always among them."""
    if not curve:
        return _line("no loss was measured", "dim")
    scale = Scale.of([0.0, *(one.loss for one in curve)]) or Scale(0.0, 0.0)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("step", "loss"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    for place in evenly(len(curve), rows):
        one = curve[place]
        step = f"#{place + 1}" if one.step is None else str(one.step)
        length = scale.share(one.loss) if isfinite(one.loss) else 0.0
        table.add_row(step, loss_text(one.loss), Bar(1.0, 0.0, length, width=WIDEST_BAR, color="cyan"))
    return table


def prefix_style(index: int) -> str:
    """The colour of a rank in front of its lines."""
    return PREFIX_STYLES[index % len(PREFIX_STYLES)]


def _most_urgent(
    items: Sequence[Item], room: int, urgency: Callable[[Item], tuple[int, ...]]
) -> tuple[list[Item], list[Item]]:
    """Those to show, and the rest, both in their order; if there is a rest, one row is left to say so."""
    if len(items) <= room:
        return list(items), []
    places = range(len(items))
    chosen = set(sorted(places, key=lambda at: urgency(items[at]))[: max(0, room - 1)])
    return [items[at] for at in places if at in chosen], [items[at] for at in places if at not in chosen]


def _pod_urgency(pod: PodScene) -> tuple[int, ...]:
    """Failed, then not yet running, then running, then done; of each, the lowest ranks."""
    return {"Failed": 0, "Running": 2, "Succeeded": 3, "Stopped": 3}.get(pod.state, 1), pod.rank


def _rest(things: str, states: Sequence[str], *, is_all: bool) -> list[Part]:
    """One row for all that is not shown, if there is any."""
    if not states:
        return []
    start = f"{len(states)} {things}" if is_all else f"... and {len(states)} more"
    counts = [f"{count} {state}" for state, count in Counter(states).most_common()]
    return [Part(_line(", ".join([start, *counts]), "dim"), 1)]


def _job(job: JobScene, width: int, rows: int, *, is_first: bool) -> list[Part]:
    is_roomy = rows >= ROOMY
    parts = [] if is_first or not is_roomy else [BLANK]
    parts.append(Part(_header(job), 1))
    if job.condition and rows > 1:
        parts += _indented([Part(_line(job.condition, "dim"), 1)])
    if job.failures and rows >= ROOM_FOR_SETBACK:
        parts += _indented(_setback(job))
    if job.pods and is_roomy:
        parts.append(BLANK)
    room = rows - len(parts)
    curve = _curve(job, width, room)
    pods = _pods(job.pods, width, room - sum(part.rows for part in curve))
    return parts + _indented(pods + curve)


def _setback(job: JobScene) -> list[Part]:
    """Why the newest of its tries failed, if that is news no more; and what to do, which stands at an end."""
    if job.phase == "Completed":
        return []
    failure = job.failures[-1]
    message = on_this_machine(failure.message)
    rows = [] if message in job.condition else [f"try {failure.attempt} failed: {message}"]
    rows.append("; ".join(f"{name}: {text}" for name, text in facts(failure)))
    return [Part(_line(row, "yellow"), 1) for row in rows if row]


def _header(job: JobScene) -> Text:
    style = STYLES.get(job.phase, "dim")
    header = _line(SIGNS.get(job.phase, "●"), style)
    header.append(f" {readable(job.name)}", "bold")
    words = (
        (job.mode, "dim"),
        (job.phase or NO_PHASE, style),
        (f"restarts {job.restarts}" if job.restarts else "", "yellow"),
        (_duration(job.seconds), "dim"),
    )
    for word, word_style in words:
        header.append(f"  {readable(word)}" if word else "", word_style)
    return header


def _duration(seconds: float) -> str:
    minutes, rest = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes:02}m"
    return f"{minutes}m{rest:02}s" if minutes else f"{rest}s"


@dataclass(frozen=True)
class Row:
    """Of a pod, or of one of its processes; what is the same as in the row above is left out."""

    pod: PodScene
    process: ProcessScene | None = None
    names_role: bool = True

    @property
    def names_pod(self) -> bool:
        return self.process is None or self.process is self.pod.processes[0]

    @property
    def rank(self) -> str:
        rank = str(self.pod.rank)
        return process_name(rank, self.process.local_rank) if self.process is not None else rank

    @property
    def said(self) -> PodScene | ProcessScene:
        return self.process if self.process is not None else self.pod


def _pods(pods: Sequence[PodScene], width: int, room: int) -> list[Part]:
    """With their processes, if there is room for all of them."""
    if not pods or room < 1:
        return []
    shown, others = _most_urgent(_by_role(pods), room - 1, _pod_urgency)
    rows = _rows(shown)
    if others or len(rows) > room - 1:
        rows = [Row(pod) for pod in shown]
    table = [Part(_pod_table(_with_roles_once(rows), width), 1 + len(rows))] if shown else []
    return table + _rest("pods", [pod.state for pod in others], is_all=not shown)


def _rows(pods: Sequence[PodScene]) -> list[Row]:
    return [Row(pod, process) for pod in pods for process in pod.processes or (None,)]


def _by_role(pods: Sequence[PodScene]) -> list[PodScene]:
    """Roles in the order in which they come, ranks in theirs."""
    roles = {role: place for place, role in enumerate(dict.fromkeys(pod.role for pod in pods))}
    return sorted(pods, key=lambda pod: (roles[pod.role], pod.rank))


def _state(row: Row) -> str:
    pod = row.pod
    return f"{pod.state}: {pod.reason}" if pod.reason else pod.state


def _step(row: Row) -> str:
    latest = row.said.latest
    return "" if latest is None or latest.step is None else str(latest.step)


def _loss(row: Row) -> str:
    return "" if row.said.latest is None else loss_text(row.said.latest.loss)


@dataclass(frozen=True)
class Column:
    title: str
    text: Callable[[Row], str]
    style: Callable[[Row], str] = lambda _: ""
    justify: JustifyMethod = "left"
    needs: int = 0  # the narrowest view that has room for it
    widest: int | None = None
    is_of_pod: bool = False  # the same for all of its processes

    def cell(self, row: Row) -> Text:
        return _line("" if self.is_of_pod and not row.names_pod else self.text(row), self.style(row))


RESTARTS = Column("restarts", lambda row: str(row.pod.restarts), justify="right", is_of_pod=True)
LAST_LINE = Column("last line", lambda row: row.said.last_line, lambda _: "dim", needs=72)
COLUMNS = (
    Column("role", lambda row: row.pod.role if row.names_role else ""),
    Column("rank", lambda row: row.rank, justify="right"),
    Column("address", lambda row: row.pod.address, needs=64, is_of_pod=True),
    Column("state", _state, lambda row: STYLES.get(row.pod.state, ""), widest=36, is_of_pod=True),
    RESTARTS,
    Column("step", _step, justify="right", needs=48, widest=12),
    Column("loss", _loss, justify="right", needs=40),
    LAST_LINE,
)


def _pod_table(rows: Sequence[Row], width: int) -> Table:
    columns = [column for column in COLUMNS if width >= column.needs]
    if not any(row.pod.restarts for row in rows):
        columns.remove(RESTARTS)
    expand = LAST_LINE in columns
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", expand=expand)
    for column in columns:
        ratio = 1 if column is LAST_LINE else None
        table.add_column(
            column.title, justify=column.justify, no_wrap=True, max_width=column.widest, ratio=ratio
        )
    for row in rows:
        table.add_row(*(column.cell(row) for column in columns))
    return table


def _with_roles_once(rows: Sequence[Row]) -> list[Row]:
    """A role is named where it begins, and not again in each row."""
    above = ["", *(row.pod.role for row in rows)]
    return [replace(row, names_role=row.pod.role != role) for row, role in zip(rows, above, strict=False)]


def _curve(job: JobScene, width: int, room: int) -> list[Part]:
    """As much of a chart as the pods leave room for; a row of blocks where that is too little."""
    if room >= ROOM_FOR_CHART:
        height = min(HIGHEST_CHART, max(LOWEST_CHART, room - len(_rows(job.pods)) - 2))
        rows = chart(job.curve, min(width - INDENT, WIDEST_CHART), height)
        return [BLANK, *map(_curve_row, rows)] if rows else []
    losses = [one.loss for one in job.curve]
    blocks = spark(losses, min(width - 2 * len("loss 0.0000 "), WIDEST_BAR))
    if room < ROOM_FOR_SPARK or not blocks:
        return []
    return [_curve_row(f"loss {loss_text(losses[0])} {blocks} {loss_text(losses[-1])}")]


def _curve_row(row: str) -> Part:
    line = _line(row, "dim")
    line.highlight_regex("[\u2801-\u28ff▁-█]+", "not dim cyan")
    return Part(line, 1)


def _line(text: str, style: str) -> Text:
    return Text(readable(text), style, no_wrap=True, overflow="ellipsis")


def _indented(parts: Iterable[Part]) -> list[Part]:
    return [Part(Padding(part.drawing, (0, 0, 0, INDENT)), part.rows) for part in parts]
