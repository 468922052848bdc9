"""What is read in the end of a log, as Paddle 2.6.2, 3.0.0 and 3.3.1 write it, and what is not."""

import pytest

from paddle_operator.paddlejob.launcher_words import (
    MOST_OF_A_PATH,
    NOTHING,
    Loss,
    Words,
    listen,
    log_beside,
)

FAILED = "LAUNCH ERROR 2026-11-19 23:27:22,988 Container failed !!!\n"
DETAIL = "LAUNCH INFO 2026-11-19 23:27:22,988 ------------------------- ERROR LOG DETAIL ---------------\n"
GLOO = "/paddle/third_party/gloo/gloo/transport/tcp/pair.cc:584] TIMEOUT"
SECRET = "hunter2"


def words(process: int = 1, code: int = 1, log: str = "log/workerlog.1", cmd: str = "['python']") -> str:
    return f"Container rank {process} status failed cmd {cmd} code {code} log {log}"


def lost(by: int, of: int, address: str = "10.0.0.7") -> str:
    return f"RuntimeError: [{GLOO} self_rank = {by} pair_rank = {of} peer_str = [{address}]:45966\n"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (words(), Words(1, 1, "log/workerlog.1")),
        (words(2, -9, "/tmp/x/workerlog.2"), Words(2, -9, "/tmp/x/workerlog.2")),
        (words(0, -6, "workerlog.0 \nenv {'PASSWORD': 'hunter2'}"), Words(0, -6, "workerlog.0")),
        (words(cmd="['sh', '-c', 'x code 7 log workerlog.9']"), Words(1, 1, "log/workerlog.1")),
        (words(log="None"), Words(1, 1, "")),
        (words(log="/x/" + "y" * MOST_OF_A_PATH + "/workerlog.1"), Words(1, 1, "")),
        (words(log="log\x1b[2J/workerlog.1"), Words(1, 1, "")),
        (words(log="PASSWORD=hunter2"), Words(1, 1, "")),
        (words()[:-20], None),
        (words()[5:], None),
        (f"step=1 {words()}", None),
        ("Container rank x status failed cmd [] code 1 log workerlog.1", None),
        ("Container rank 1234567 status failed cmd [] code 1 log workerlog.1", None),
        ("Container rank 1 status failed cmd [] code 12345 log workerlog.1", None),
        ("Container rank \u0661 status failed cmd [] code 1 log workerlog.1", None),
        ("LAUNCH INFO Exit code -15", None),
    ],
    ids=str,
)  # fmt: skip
def test_the_launcher_names_a_trainer_its_code_and_its_log(line: str, expected: Words | None) -> None:
    for text in (line, f"step=1\n{FAILED}{line}\n{DETAIL}ValueError: bad\nLAUNCH INFO Exit code -15\n"):
        assert listen(text).words == expected


def test_of_several_runs_the_last_counts() -> None:
    again = f"{FAILED}{words(3, 7, 'log/workerlog.3')}\n{DETAIL}"
    told = listen(f"{FAILED}{words()}\n{DETAIL}{lost(0, 1)}{again}SystemExit: 7\n")
    assert told.words == Words(3, 7, "log/workerlog.3")
    assert not told.lost_a_peer


def test_what_another_trainer_says_is_not_what_the_named_one_says() -> None:
    """The log of the first trainer stands before the words, that of the named one after them."""
    raised = "Traceback (most recent call last):\nValueError: bad batch\n"
    cause = listen(f"{lost(2, 3)}{FAILED}{words()}\n{DETAIL}{raised}")
    assert (cause.lost_a_peer, cause.raised, cause.losses) == (False, True, (Loss(2, 3),))
    victim = listen(f"{raised}{FAILED}{words(0)}\n{DETAIL}{lost(2, 3)}")
    assert (victim.lost_a_peer, victim.losses) == (True, (Loss(2, 3),))


def test_without_the_launchers_words_the_whole_text_is_searched() -> None:
    assert listen(lost(0, 1)).lost_a_peer
    assert listen(lost(0, 1) * 3).losses == (Loss(0, 1),)
    assert listen("[/x/gloo/transport/tcp/pair.cc:576] Read error [10.0.0.7]:80: reset").lost_a_peer
    assert not listen("ValueError: bad batch").lost_a_peer


@pytest.mark.parametrize(
    "text",
    ["", "\n", "\ufffd" * 2048, "==> log/other <==\nx", "self_rank = 1234567 pair_rank = 1", "self_rank = 1"],
)
def test_what_says_nothing_tells_nothing(text: str) -> None:
    assert listen(text) == NOTHING


def test_logs_of_single_trainers_under_headers_tell_who_lost_a_peer_and_who_did_not() -> None:
    stopped = "FatalError: `Termination signal` is detected by the operating system."
    aborted = "FatalError: `Process abort signal` is detected by the operating system."
    logs = [lost(0, 1), "ValueError: bad\n", stopped, aborted, "step=20 loss=0.5\n"]
    headed = "\n".join(f"==> /x/log/workerlog.{process} <==\n{log}" for process, log in enumerate(logs))
    told = listen(f"{FAILED}{words(1)}\n{DETAIL}ValueError: bad\n{headed}")
    assert sorted(told.victims) == [0, 2, 3]
    assert sorted(told.others) == [1, 4]
    assert not told.lost_a_peer, "that is what another one says"


def test_a_launcher_that_begins_says_how_many_trainers_it_has() -> None:
    said = "LAUNCH INFO Run Pod: xihtjk, replicas 4, status ready\n"
    assert listen(said).processes == 4
    assert listen(said.replace("4", "0")).processes is None


def test_nothing_but_numbers_and_a_path_leaves_the_text() -> None:
    cmd = f"['python', 'train.py', '--password={SECRET}']"
    text = f"{SECRET}\n{lost(0, 1)}{FAILED}{words(cmd=cmd)} \nenv {SECRET}\n{DETAIL}{SECRET}"
    assert SECRET not in repr(listen(text))


def test_a_long_text_that_is_made_to_be_slow_is_not() -> None:
    """No kubelet gives more than 4096 bytes, so this would take hours if it took long at all."""
    line = "Container rank 1 status failed cmd " + " code 1" * 20_000
    assert listen(f"{line}\n" * 3).words is None


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("log/workerlog.0", "log/workerlog.2"),
        ("workerlog.0", "workerlog.2"),
        ("", "workerlog.2"),
        ("/a/workerlog.1/workerlog.1", "/a/workerlog.1/workerlog.2"),
    ],
)
def test_the_log_of_another_trainer_is_beside_it(log: str, expected: str) -> None:
    assert log_beside(log, 2) == expected
