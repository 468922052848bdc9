"""The Chinese pages say what the English ones say, as far as a test can tell: only the English ones are run.

Links, quoted files and YAML of all pages, these among them, are checked by test_docs.py.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TOP = Path(__file__).parents[1]
NAMES = (
    "install",
    "user-guide",
    "paddlejob",
    "reports",
    "launchers",
    "configuration",
    "upgrade",
    "troubleshooting",
    "metrics",
    "security",
    "reliability",
    "performance",
)
# Of each English page, the Chinese one.
PAGES = {TOP / "README.md": TOP / "README-zh_CN.md"} | {
    TOP / "docs" / "en" / f"{name}.md": TOP / "docs" / "zh_CN" / f"{name}.md" for name in NAMES
}
TROUBLESHOOTING = TOP / "docs" / "en" / "troubleshooting.md"  # its tables stay English, and are linked to
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"(^|[ \t]+)# .*$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#]*)(#[^)]*)?\)")
CODE = re.compile(r"`([^`]+)`")
CHINESE = re.compile(r"[\u4e00-\u9fff]")

of_each_page = pytest.mark.parametrize("english", PAGES, ids=lambda page: str(page.relative_to(TOP)))


def blocks_of(text: str) -> list[tuple[str, str]]:
    """Language and commands of each block; comments may be translated."""
    return [(language, COMMENT.sub("", block)) for language, block in BLOCK.findall(text)]


def headings_of(text: str) -> list[str]:
    return re.findall(r"^## .+$", BLOCK.sub("", text), re.MULTILINE)


def code_words_of(text: str) -> set[str]:
    """Fields, options, reasons... what stands in backquotes, and may be broken over lines."""
    return {" ".join(word.split()) for word in CODE.findall(BLOCK.sub("", text))}


def links_of(page: Path) -> Iterator[Path | str]:
    """Files with their whole paths, sections left out: these have other names in each language."""
    for link, _ in LINK.findall(page.read_text()):
        yield link if link.startswith("https://") else (page.parent / link).resolve() if link else page


def in_english(target: Path | str) -> Path | str:
    return next((english for english, chinese in PAGES.items() if chinese == target), target)


@of_each_page
def test_the_page_is_chinese(english: Path) -> None:
    titles = headings_of(PAGES[english].read_text())
    assert titles
    assert all(CHINESE.search(title) for title in titles)


@of_each_page
def test_it_has_the_blocks_of_the_english_page(english: Path) -> None:
    assert blocks_of(PAGES[english].read_text()) == blocks_of(english.read_text())


@of_each_page
def test_it_has_as_many_sections_as_the_english_page(english: Path) -> None:
    assert len(headings_of(PAGES[english].read_text())) == len(headings_of(english.read_text()))


@of_each_page
def test_it_names_what_the_english_page_names(english: Path) -> None:
    ours, theirs = code_words_of(PAGES[english].read_text()), code_words_of(english.read_text())
    if english == TROUBLESHOOTING:
        assert ours <= theirs
    else:
        assert ours == theirs


@of_each_page
def test_it_links_to_what_the_english_page_links_to(english: Path) -> None:
    ours = {in_english(target) for target in links_of(PAGES[english])}
    theirs = {in_english(target) for target in links_of(english)}
    assert ours == theirs | ({english} & {TROUBLESHOOTING})


@of_each_page
def test_a_reader_is_not_sent_to_english_where_there_is_chinese(english: Path) -> None:
    allowed = {TOP / "README.md"} if english.name == "README.md" else {english} & {TROUBLESHOOTING}
    assert {*links_of(PAGES[english])} & PAGES.keys() == allowed


def test_each_chinese_page_has_an_english_one() -> None:
    assert {*(TOP / "docs" / "zh_CN").glob("*.md")} == {*PAGES.values()} - {TOP / "README-zh_CN.md"}


def test_a_command_that_differs_is_seen_and_a_comment_is_not() -> None:
    page = "```shell\nkubectl get pdj    # all of them\n# and\nkubectl wait --for=x#y\n```\n"
    assert blocks_of(page) == [("shell", "kubectl get pdj\n\nkubectl wait --for=x#y\n")]
    assert blocks_of(page.replace("all of them", "全部")) == blocks_of(page)
    assert blocks_of(page.replace("get", "describe")) != blocks_of(page)
