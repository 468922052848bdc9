"""The runner of the documents' shell blocks runs what it should, and tells what went wrong and where."""

import os
import select
from collections import Counter
from pathlib import Path

import pytest
import shell_blocks
from shell_blocks import Block, BlockError, blocks_of, run_page

PAGE = """\
# A page

```shell
export WORD=hello      # lasts
cd folder
make test
```

Not typed by anybody:

```text
$ false
```

<!-- not run: needs a registry -->
```shell
false
```

```shell
echo "$WORD" > word
cat - <<END
two
END
```
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    (tmp_path / "scratch").mkdir()
    (tmp_path / "tree" / "folder").mkdir(parents=True)
    return tmp_path / "page.md"


def run(page: Path, text: str) -> shell_blocks.Outcome:
    page.write_text(text)
    return run_page(page, page.parent / "tree", os.environ, page.parent / "scratch")


def test_blocks_know_their_lines_and_why_they_are_left_out() -> None:
    assert [*blocks_of(PAGE)] == [
        Block(4, "export WORD=hello      # lasts\ncd folder\n", (shell_blocks.OF_SET_UP,)),
        Block(17, "", ("needs a registry",)),
        Block(21, 'echo "$WORD" > word\ncat - <<END\ntwo\nEND'),
    ]


def test_all_blocks_are_one_shell(page: Path) -> None:
    outcome = run(page, PAGE)
    assert (page.parent / "tree" / "folder" / "word").read_text() == "hello\n"
    assert outcome.run == 2
    assert outcome.left_out == Counter({shell_blocks.OF_SET_UP: 1, "needs a registry": 1})
    assert str(outcome).endswith("2 left out (1 make: sets up the machine; 1 needs a registry)")


@pytest.mark.parametrize(
    "command", ["false", "cat nowhere", "echo $NOT_SET", "false | cat", "(exit 3)", "no-such-program", "f(){"]
)
def test_a_command_that_fails_is_told_with_its_line(page: Path, command: str) -> None:
    text = f"Words.\n\n```shell\necho one\n```\n\n```shell\necho two\n{command}\n```\n"
    with pytest.raises(BlockError, match=r"page\.md, line 8: this block failed:") as failed:
        run(page, text)
    assert "page.md: line " in str(failed.value)
    assert command in str(failed.value)
    assert "one" not in str(failed.value)


def test_a_block_that_does_not_end_is_ended_with_what_it_started(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shell_blocks, "BLOCK_SECONDS", 0.5)
    with pytest.raises(BlockError, match="did not end within"):
        run(page, "```shell\nsleep 1000 & echo $! > ../pid; wait\n```\n")
    assert ends(int((page.parent / "pid").read_text()))


def ends(pid: int) -> bool:
    """A process that was sent SIGKILL may still be on its way out."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([process], [], [], 10)[0])
    finally:
        os.close(process)


def test_what_runs_in_the_background_does_not_hide_a_failure(page: Path) -> None:
    with pytest.raises(BlockError, match="line 2: this block failed"):
        run(page, "```shell\nsleep 1000 &\nfalse\n```\n")


def test_a_page_without_blocks_has_run_nothing(page: Path) -> None:
    assert run(page, "# Words\n").run == 0
