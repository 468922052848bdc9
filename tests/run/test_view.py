"""The picture of a run: what stands in it, and that it keeps to its size whatever is shown."""

from dataclasses import replace
from io import StringIO
from math import inf, nan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console, RenderableType

from paddle_operator.api.paddlejob import Failure
from paddle_operator.run.scene import JobScene, Measurement, PodScene, ProcessScene, Scene, process_name
from paddle_operator.run.view import draw, loss_table, prefix_style

STATES = ["Pending", "Starting", "Running", "Succeeded", "Failed", "Terminating"]
PHASES = ["", "Pending", "Starting", "Running", "Restarting", "Completed", "Failed", "Terminating"]


def rows_of(drawing: RenderableType, width: int = 100) -> list[str]:
    """The rows as rich writes them; nothing is cropped for us, so that what is too wide shows."""
    file = StringIO()
    console = Console(width=width, height=1000, file=file, color_system=None, legacy_windows=False)
    console.print(drawing, crop=False)
    return [row.rstrip() for row in file.getvalue().splitlines()]


def drawn(*jobs: JobScene, width: int = 100, height: int = 24) -> list[str]:
    return rows_of(draw(Scene(jobs), width=width, height=height), width)


def pod(rank: int, state: str = "Running", role: str = "worker", last_line: str = "") -> PodScene:
    return PodScene(
        name=f"resnet-{role}-{rank}",
        role=role,
        rank=rank,
        address=f"127.0.1.{rank + 1}",
        state=state,
        reason="",
        restarts=0,
        last_line=last_line,
        latest=None,
    )


def job(*pods: PodScene, curve: tuple[Measurement, ...] = ()) -> JobScene:
    return JobScene(
        name="default/resnet",
        mode="Collective",
        phase="Running",
        condition="Running (AllPodsRun): all pods run",
        seconds=75.2,
        pods=pods,
        curve=curve,
        finished=False,
    )


def several(rank: int, processes: int = 2, state: str = "Running") -> PodScene:
    """A pod in which each process counts its own steps."""
    one = pod(rank, state, last_line="step=0 loss=0.5")
    counts = (
        ProcessScene(process_name(one.name, k), k, f"step={k} loss=0.5", Measurement(k, 0.5))
        for k in range(processes)
    )
    return replace(one, processes=tuple(counts))


FALLING = tuple(Measurement(step, 1 / step) for step in range(1, 101))


def test_a_job_is_drawn_with_its_pods_and_its_curve() -> None:
    first = replace(pod(0, last_line="step=100 loss=0.01"), latest=Measurement(100, 0.01))
    second = replace(pod(1, "Failed"), reason="exit code 1", restarts=2, last_line="ValueError: x")
    rows = drawn(job(first, second, curve=FALLING), height=16)
    assert rows[:7] == [
        "● default/resnet  Collective  Running  1m15s",
        "  Running (AllPodsRun): all pods run",
        "",
        "  role    rank  address    state                restarts  step    loss  last line",
        "  worker     0  127.0.1.1  Running                     0   100  0.0100  step=100 loss=0.01",
        "             1  127.0.1.2  Failed: exit code 1         2                ValueError: x",
        "",
    ]
    assert rows[7].startswith("  1.0000 ┤")
    assert rows[-1].startswith("    loss └ step 1")
    assert rows[-1].endswith(" 100")


FAILURE = Failure(message="worker 1 crashed", kind="code", victims="worker 0", next_step="look at its log")
NEXT = "  class: code; victims: worker 0; next step: look at its log"


@pytest.mark.parametrize(
    ("phase", "condition", "rows"),
    [
        (
            "Restarting",
            "Restarting (PodFailed): worker 1 crashed; failures 1 of 3",
            ["  Restarting (PodFailed): worker 1 crashed; failures 1 of 3", NEXT],
        ),
        (
            "Running",
            "Running (AllPodsRun): all pods run",
            ["  Running (AllPodsRun): all pods run", "  try 0 failed: worker 1 crashed", NEXT],
        ),
        (
            "Failed",
            "Failed (PodFailed): worker 1 crashed",
            ["  Failed (PodFailed): worker 1 crashed", NEXT],
        ),
        ("Completed", "Completed (AllPodsSucceeded)", ["  Completed (AllPodsSucceeded)"]),
    ],
)
def test_a_job_that_was_restarted_says_why_until_it_has_completed(
    phase: str, condition: str, rows: list[str]
) -> None:
    restarted = replace(job(), phase=phase, condition=condition, restarts=1, failures=(FAILURE,))
    header, *rest = drawn(restarted)
    assert header[2:] == f"default/resnet  Collective  {phase}  restarts 1  1m15s"
    assert rest == rows


def test_where_there_is_little_room_the_pods_go_before_an_old_failure() -> None:
    restarted = replace(job(pod(0), pod(1)), restarts=1, failures=(FAILURE,))
    assert len(drawn(restarted, height=7)) == 5
    assert not any("crashed" in row for row in drawn(restarted, height=7))


def test_a_job_that_the_operator_has_not_seen_is_new() -> None:
    new = replace(job(), phase="", mode="", condition="", seconds=0.4)
    assert drawn(new) == ["● default/resnet  New  0s"]


def test_an_empty_scene_is_empty() -> None:
    assert drawn() == []


@pytest.mark.parametrize(
    ("seconds", "text"), [(-1, "0s"), (59.9, "59s"), (60, "1m00s"), (3599, "59m59s"), (3725, "1h02m")]
)
def test_elapsed_time_is_short(seconds: float, text: str) -> None:
    assert drawn(replace(job(), seconds=seconds))[0].endswith(f"  {text}")


def test_pods_stand_by_role_and_rank_and_restarts_only_if_there_are_any() -> None:
    rows = drawn(job(pod(1, role="ps"), pod(1), pod(0, role="ps"), pod(0)))
    assert [row.split()[:2] for row in rows[4:]] == [
        ["ps", "0"],
        ["1", "127.0.1.2"],
        ["worker", "0"],
        ["1", "127.0.1.2"],
    ]
    assert "restarts" not in rows[3]


@pytest.mark.parametrize(
    ("width", "titles"),
    [
        (72, ["role", "rank", "address", "state", "step", "loss", "last", "line"]),
        (71, ["role", "rank", "address", "state", "step", "loss"]),
        (63, ["role", "rank", "state", "step", "loss"]),
        (47, ["role", "rank", "state", "loss"]),
        (39, ["role", "rank", "state"]),
    ],
)
def test_a_narrow_view_shows_what_matters_most(width: int, titles: list[str]) -> None:
    assert drawn(job(pod(0)), width=width)[3].split() == titles


def test_each_of_several_processes_has_a_row_and_its_pod_is_named_once() -> None:
    rows = drawn(job(several(0), several(1, state="Failed"), pod(2)), width=80, height=13)
    assert rows[2:] == [
        "  role    rank  address    state    step    loss  last line",
        "  worker   0:0  127.0.1.1  Running     0  0.5000  step=0 loss=0.5",
        "           0:1                         1  0.5000  step=1 loss=0.5",
        "           1:0  127.0.1.2  Failed      0  0.5000  step=0 loss=0.5",
        "           1:1                         1  0.5000  step=1 loss=0.5",
        "             2  127.0.1.3  Running",
    ]


@pytest.mark.parametrize(
    ("height", "ranks"),
    [
        (11, [f"{rank}:{k}" for rank in range(4) for k in range(2)]),
        (10, ["0", "1", "2", "3"]),
        (7, ["0", "1", "2", "3"]),
        (6, ["0", "1"]),
    ],
)
def test_where_there_is_no_room_for_all_processes_each_pod_has_one_row(height: int, ranks: list[str]) -> None:
    rows = drawn(job(*map(several, range(4))), width=80, height=height)
    assert len(rows) <= height
    assert [row[8:15].strip() for row in rows[3:] if "step=" in row] == ranks


def test_what_a_script_prints_is_shown_and_never_obeyed() -> None:
    rows = drawn(job(pod(0, last_line="\x1b[31m[bold]x[/bold] [/] :smile: \a[link=http://a]b\r\n")))
    assert rows[-1].endswith("[bold]x[/bold] [/] :smile: [link=http://a]b")


def test_a_long_last_line_is_cropped() -> None:
    rows = drawn(job(pod(0, last_line="x" * 10_000)), width=100)
    assert rows[-1].endswith("xxx…")
    assert len(rows) == 5


def test_of_many_pods_those_that_matter_are_shown() -> None:
    states = {37: "Failed", 50: "Pending", 51: "Terminating", 2: "Succeeded"}
    pods = [pod(rank, states.get(rank, "Running")) for rank in range(64)]
    rows = drawn(job(*pods), height=10)
    assert [row.split()[-1] for row in rows[3:-1]] == [
        "Running",
        "Running",
        "Running",
        "Failed",
        "Pending",
        "Terminating",
    ]
    assert rows[-1] == "  ... and 58 more, 57 Running, 1 Succeeded"


@pytest.mark.parametrize(
    ("height", "last"),
    [
        (1, "● default/resnet  Collective  Running  1m15s"),
        (2, "  Running (AllPodsRun): all pods run"),
        (3, "  1000 pods, 1000 Running"),
        (5, "  ... and 999 more, 999 Running"),
        (40, "  ... and 965 more, 965 Running"),
    ],
)
def test_a_thousand_pods_fit_into_any_height(height: int, last: str) -> None:
    rows = drawn(job(*map(pod, range(1000))), height=height)
    assert len(rows) == height
    assert rows[-1] == last


def test_a_curve_without_room_is_a_row_of_blocks() -> None:
    rows = drawn(job(pod(0), curve=FALLING), height=8)
    assert rows[-1] == "  loss 1.0000 █▃▂▂▂▂▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁ 0.0100"


def test_of_more_jobs_than_rows_those_that_matter_are_shown() -> None:
    names = ["done", "failed", "running", "done too"]
    phases = ["Completed", "Failed", "Running", "Completed"]
    jobs = [
        replace(job(), name=name, phase=phase, finished=phase != "Running")
        for name, phase in zip(names, phases, strict=True)
    ]
    assert drawn(*jobs, height=3) == [
        "✗ failed  Collective  Failed  1m15s",
        "● running  Collective  Running  1m15s",
        "... and 2 more, 2 Completed",
    ]


def test_what_one_job_does_not_need_another_may_use() -> None:
    small, large = job(pod(0)), job(*map(pod, range(30)))
    rows = drawn(small, large, height=40)
    assert len(rows) == 40
    assert rows[-1].split()[0] == "29"


TEXTS = st.text(max_size=12) | st.sampled_from(
    ["进度" * 30, "[bold]", "a\nb", "\x1b[2J", "e\u0301" * 9, "👩‍👩‍👧" * 9]
)
MEASUREMENTS = st.builds(
    Measurement, st.none() | st.integers(0, 10**30), st.floats() | st.sampled_from([nan, inf, 1e308, -1e-300])
)
PODS = st.builds(
    PodScene,
    name=TEXTS,
    role=st.sampled_from(["ps", "worker", "heter", "进度"]),
    rank=st.integers(0, 10_000),
    address=TEXTS,
    state=st.sampled_from(STATES) | TEXTS,
    reason=TEXTS,
    restarts=st.integers(0, 10**6),
    last_line=TEXTS,
    latest=st.none() | MEASUREMENTS,
    processes=st.lists(
        st.builds(ProcessScene, TEXTS, st.integers(0, 100), TEXTS, st.none() | MEASUREMENTS), max_size=4
    ).map(tuple),
)
JOBS = st.builds(
    JobScene,
    name=TEXTS,
    mode=TEXTS,
    phase=st.sampled_from(PHASES) | TEXTS,
    condition=TEXTS,
    seconds=st.floats(0, 1e9),
    pods=st.lists(PODS, max_size=12).map(tuple),
    curve=st.lists(MEASUREMENTS, max_size=12).map(tuple),
    finished=st.booleans(),
    restarts=st.integers(0, 1000),
    failures=st.lists(st.builds(Failure, message=TEXTS, next_step=TEXTS, kind=TEXTS), max_size=2).map(tuple),
)


@settings(deadline=None)
@given(st.lists(JOBS, max_size=4), st.integers(1, 130), st.integers(1, 50))
def test_no_scene_is_wider_or_higher_than_the_terminal(jobs: list[JobScene], width: int, height: int) -> None:
    rows = drawn(*jobs, width=width, height=height)
    assert len(rows) <= height
    assert max(map(cell_len, rows), default=0) <= width
    assert len(rows) >= min(len(jobs), height)


def test_the_table_at_the_end_has_the_first_and_the_last_step() -> None:
    curve = tuple(Measurement(step * 10, 8.0 - step) for step in range(9))
    rows = rows_of(loss_table(curve, rows=3))
    assert rows == [
        "step    loss",
        f"   0  8.0000  {'█' * 32}",
        f"  40  4.0000  {'█' * 16}",
        "  80  0.0000",
    ]


def test_the_table_at_the_end_takes_any_loss() -> None:
    curve = (Measurement(None, nan), Measurement(None, inf), Measurement(None, -1.0), Measurement(None, 1.0))
    assert [row.split() for row in rows_of(loss_table(curve))] == [
        ["step", "loss"],
        ["#1", "nan"],
        ["#2", "inf"],
        ["#3", "-1.0000"],
        ["#4", "1.0000", "█" * 32],
    ]


def test_a_run_without_a_loss_says_so() -> None:
    assert rows_of(loss_table(())) == ["no loss was measured"]


@settings(deadline=None)
@given(st.lists(MEASUREMENTS, min_size=1), st.integers(2, 20))
def test_the_table_at_the_end_keeps_to_its_rows(curve: list[Measurement], rows: int) -> None:
    assert len(rows_of(loss_table(curve, rows))) == 1 + min(rows, len(curve))


def test_neighbours_differ_in_colour_and_none_looks_like_a_failure() -> None:
    styles = [prefix_style(index) for index in range(20)]
    assert all(styles[index] != styles[index + 1] for index in range(19))
    assert not any("red" in style for style in styles)
