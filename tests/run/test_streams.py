"""What a pod prints: each process by itself, nothing twice, and only processes are measured."""

from pathlib import Path

import pytest
from launcher_words import DETAIL, EXIT, FAILED, RANK, WATCHING

from paddle_operator.api.meta import Key
from paddle_operator.local.logs import begin_run, log_file, process_log
from paddle_operator.run.metrics import Metric
from paddle_operator.run.scene import Measurement
from paddle_operator.run.streams import Training


class Container:
    """Written by the test in place of a launcher."""

    def __init__(self, folder: Path) -> None:
        self.log = log_file(folder, Key("team", "pod"), "paddle")
        self.training = Training(self.log, Metric.of(None))
        begin_run(self.log, 0, 0)

    def prints(self, *lines: str) -> None:
        with self.log.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)

    def process(self, local_rank: int, *lines: str) -> None:
        with process_log(self.log, local_rank).open("a") as file:
            file.writelines(f"{line}\n" for line in lines)

    def read(self, *, is_complete: bool = False) -> list[tuple[str, str]]:
        found = self.training.read("pod", is_complete=is_complete)
        return [(source, text) for source, lines in found for text in lines]

    @property
    def curve(self) -> list[int | None]:
        return [one.step for one in self.training.curve]


@pytest.fixture
def container(tmp_path: Path) -> Container:
    return Container(tmp_path)


def steps(*numbers: int) -> list[str]:
    return [f"step={number} loss=0.5" for number in numbers]


def test_a_script_without_a_launcher(container: Container) -> None:
    container.prints("hello", *steps(1))
    assert container.read() == [("pod", "hello"), ("pod", "step=1 loss=0.5")]
    assert container.training.scenes("pod") == ()
    assert (container.curve, container.training.last_line) == ([1], "step=1 loss=0.5")


def test_one_process_is_shown_under_the_name_of_its_pod_before_the_launcher_copies_it(
    container: Container,
) -> None:
    container.prints(WATCHING)
    container.process(0, *steps(1))
    assert container.read() == [("pod", WATCHING), ("pod", "step=1 loss=0.5")]
    container.prints(*steps(1), EXIT)
    assert container.read() == [("pod", EXIT)]
    assert container.training.scenes("pod") == ()
    assert (container.curve, container.training.last_line) == ([1], "step=1 loss=0.5")


def test_each_of_several_processes_is_a_stream_of_its_own(container: Container) -> None:
    container.prints(WATCHING)
    for rank in (1, 0):
        container.process(rank, f"I am {rank}", f"step=7 loss=0.{rank + 1}")
    assert container.read() == [
        ("pod", WATCHING),
        ("pod:0", "I am 0"),
        ("pod:0", "step=7 loss=0.1"),
        ("pod:1", "I am 1"),
        ("pod:1", "step=7 loss=0.2"),
    ]
    container.prints("I am 0", "step=7 loss=0.1", EXIT)
    assert container.read() == [("pod", EXIT)]
    assert [
        (one.name, one.local_rank, one.last_line, one.latest) for one in container.training.scenes("pod")
    ] == [
        ("pod:0", 0, "step=7 loss=0.1", Measurement(7, 0.1)),
        ("pod:1", 1, "step=7 loss=0.2", Measurement(7, 0.2)),
    ]
    assert container.training.latest == Measurement(7, 0.1)


def test_the_curve_is_that_of_the_first_process_that_measures(container: Container) -> None:
    container.process(0, "no loss here")
    container.process(1, *steps(1, 2))
    container.process(2, *steps(7))
    container.read()
    assert container.curve == [1, 2]


def test_the_log_of_a_failed_process_that_the_launcher_repeats_is_neither_shown_nor_measured(
    container: Container,
) -> None:
    container.process(0, *steps(1, 2))
    container.process(1, "ValueError")
    container.prints(WATCHING, *steps(1, 2), FAILED, RANK, DETAIL, *steps(1, 2), "ValueError", EXIT, "sorry")
    assert [text for source, text in container.read() if source == "pod"] == [
        WATCHING,
        FAILED,
        RANK,
        DETAIL,
        EXIT,
        "sorry",
    ]
    assert container.curve == [1, 2]


def test_of_a_launcher_that_keeps_its_logs_elsewhere_all_is_shown_and_nothing_measured_twice(
    container: Container,
) -> None:
    printed = [WATCHING, *steps(1, 2, 3), DETAIL, *steps(2, 3), EXIT]
    container.prints(*printed)
    assert [text for _, text in container.read()] == printed
    assert container.curve == [1, 2, 3]


def test_in_the_next_try_steps_that_are_done_again_count_once(container: Container) -> None:
    for attempt, numbers in enumerate(([10, 20, 30], [20, 30, 40])):
        begin_run(container.log, attempt, 0)
        container.prints(WATCHING, *steps(*numbers), EXIT)
        for rank in range(2):
            container.process(rank, *steps(*numbers))
        container.read()
    assert container.curve == [10, 20, 30, 40]


def test_a_new_pod_of_the_name_has_said_nothing_yet(container: Container) -> None:
    for rank in range(2):
        container.process(rank, *steps(1))
    container.read()
    container.training.begin_anew()
    assert [(one.last_line, one.latest) for one in container.training.scenes("pod")] == [("", None)] * 2
    assert (container.training.last_line, container.training.latest, container.curve) == ("", None, [1])


def test_last_lines_without_an_end_are_told_when_the_pod_has_ended(container: Container) -> None:
    for rank in range(2):
        with process_log(container.log, rank).open("a") as file:
            file.write("no end")
    container.log.write_text(f"no end{EXIT}\n")
    assert container.read() == [("pod", EXIT)]
    assert container.read(is_complete=True) == [("pod:0", "no end"), ("pod:1", "no end")]
