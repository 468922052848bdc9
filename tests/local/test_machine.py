"""What one run takes of the machine: addresses and ports that no other run has."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from paddle_operator.local import machine
from paddle_operator.local.machine import NETS, PODS_PER_NET, Block, Machine, NoRoom

# Below those of real runs, and others than those of another run of these tests.
OURS = 10_000 + os.getpid() % 16 * 600
RUNS, JOBS = range(OURS, OURS + 3), range(OURS + 20, OURS + 80, 20)


@pytest.fixture(autouse=True)
def _own_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others may run jobs on this machine while we test."""
    monkeypatch.setattr(machine, "RUNS", RUNS)
    monkeypatch.setattr(machine, "JOBS", JOBS)


@pytest.fixture
def block() -> Iterator[Block]:
    with Block.take() as block:
        yield block


def listening(port: int, address: str = "127.0.0.1") -> socket.socket:
    other = socket.socket()
    other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    other.bind((address, port))
    other.listen()
    return other


# Runs beside each other.


def test_two_at_once_differ_and_what_is_released_is_taken_again(block: Block) -> None:
    with Block.take() as second:
        assert (block.number, second.number) == (0, 1)
    with Block.take() as third:
        assert third.number == 1


def test_addresses_and_ports_of_two_runs_have_nothing_in_common(block: Block) -> None:
    with Block.take() as second:
        assert {block.address() for _ in range(300)}.isdisjoint({second.address() for _ in range(300)})
        assert [block.ports(), second.ports(), block.ports()] == list(JOBS)
    assert block.ports() == JOBS[1], "what the second had is free again"


def test_a_port_that_a_stranger_has_is_passed_over() -> None:
    with closing(listening(OURS)), Block.take() as block:
        assert block.number == 1


def test_when_all_are_taken_the_message_says_what_to_do() -> None:
    with ExitStack() as stack:
        for _ in RUNS:
            stack.enter_context(Block.take())
        with pytest.raises(NoRoom, match=r"3 runs are under way; `pgrep .*` lists them"):
            Block.take()


def test_a_run_that_was_killed_leaves_nothing_behind() -> None:
    script = (
        "import os, signal\n"
        "from paddle_operator.local import machine\n"
        f"machine.RUNS = {RUNS}\n"
        "block = machine.Block.take()\n"
        "print(block.number, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (killed.stdout, killed.returncode) == ("0\n", -9)
    with Block.take() as block:
        assert block.number == 0


# Addresses.


def test_addresses_are_loopback_and_count_up(block: Block) -> None:
    assert [block.address() for _ in range(3)] == ["127.0.1.1", "127.0.1.2", "127.0.1.3"]


def test_many_pods_have_an_address_each(block: Block) -> None:
    found = [block.address() for _ in range(3 * PODS_PER_NET + 5)]
    assert len(set(found)) == len(found)
    assert all(re.fullmatch(r"127\.0\.[1-9][0-9]*\.[1-9][0-9]*", one) for one in found)
    assert (found[PODS_PER_NET - 1], found[PODS_PER_NET], found[-1]) == (
        "127.0.1.254",
        "127.0.2.1",
        "127.0.4.5",
    )
    assert max(int(part) for one in found for part in one.split(".")) <= 254


def test_addresses_never_run_out_however_often_pods_are_made_anew(block: Block) -> None:
    found = [block.address() for _ in range(PODS_PER_NET * NETS + 1)]
    assert len(set(found)) == PODS_PER_NET * NETS
    assert found[-2:] == ["127.0.254.254", "127.0.1.1"]


def test_an_address_can_be_listened_on(block: Block) -> None:
    with closing(listening(0, block.address())) as ours:
        assert ours.getsockname()[0] == "127.0.1.1"


# Ports.


@pytest.mark.parametrize("taken", [0, 7, 19])
@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
def test_a_job_gets_no_ports_of_which_one_is_taken(block: Block, taken: int, address: str) -> None:
    with closing(listening(JOBS[0] + taken, address)):
        assert block.ports() == JOBS[1]


def test_more_jobs_than_there_are_ports_for(block: Block) -> None:
    assert [block.ports() for _ in JOBS] == list(JOBS)
    with pytest.raises(NoRoom, match="no 20 ports in a row are free"):
        block.ports()


# How big it is.


def test_this_machine() -> None:
    here = Machine.here(isolates=True)
    assert here.cpus == len(os.sched_getaffinity(0))
    assert 2**27 < here.memory < 2**50
    assert here.isolates
    assert here.capacity == {"cpu": str(here.cpus), "memory": str(here.memory)}
