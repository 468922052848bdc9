"""What is made of a text is made once, and the text itself is not kept: it may hold secrets."""

import weakref

from pytest import MonkeyPatch  # noqa: PT013 (a type)

from paddle_operator.api import remembered as module
from paddle_operator.api.remembered import remembered


class Text(str):
    """One whose end can be seen."""

    __slots__ = ("__weakref__",)


class Reader:
    def __init__(self) -> None:
        self.asked: list[int] = []

    def read(self, text: str) -> int:
        self.asked.append(len(text))
        return len(text)


def test_a_text_is_read_once_however_often_it_is_asked_for() -> None:
    reader = Reader()
    read = remembered(reader.read)
    assert [read("the end of a log") for _ in range(3)] == [16, 16, 16]
    assert reader.asked == [16]


def test_the_text_is_not_kept() -> None:
    read = remembered(len)
    text = Text("password hunter2")
    watched = weakref.ref(text)
    assert read(text) == 16
    del text
    assert watched() is None


def test_so_much_is_remembered_and_no_more(monkeypatch: MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 2)
    reader = Reader()
    read = remembered(reader.read)
    for text in ("a", "bb", "ccc", "ccc", "a"):
        read(text)
    assert reader.asked == [1, 2, 3, 1], "begun anew at the third"
