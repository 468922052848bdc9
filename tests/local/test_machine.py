"""What one run takes of the machine: addresses and ports that no other run has."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise

import pytest

from paddle_operator.local import machine
from paddle_operator.local.machine import PODS_PER_NET, PORTS_PER_JOB, PORTS_PER_RUN, Block, Machine, NoRoom

# Below those of real runs, and others than those of another run of these tests.
OURS = 10_000 + os.getpid() % 16 * 600


@pytest.fixture(autouse=True)
def _own_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others may run jobs on this machine while we test."""
    monkeypatch.setattr(machine, "FIRST_PORT", OURS)
    monkeypatch.setattr(machine, "RUNS", 3)


@pytest.fixture
def block() -> Iterator[Block]:
    block = Block.take()
    yield block
    block.release()


def listening(port: int, address: str = "127.0.0.1") -> socket.socket:
    other = socket.socket()
    other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    other.bind((address, port))
    other.listen()
    return other


# Runs beside each other.


def test_two_at_once_differ_and_what_is_released_is_taken_again() -> None:
    first, second = Block.take(), Block.take()
    assert (first.number, second.number) == (0, 1)
    first.release()
    third = Block.take()
    assert third.number == 0
    second.release()
    third.release()


def test_addresses_and_ports_of_two_runs_have_nothing_in_common() -> None:
    first, second = Block.take(), Block.take()
    try:
        assert {first.address() for _ in range(300)}.isdisjoint({second.address() for _ in range(300)})
        assert {first.port() // PORTS_PER_RUN for _ in range(3)} == {OURS // PORTS_PER_RUN}
        assert {second.port() // PORTS_PER_RUN for _ in range(3)} == {OURS // PORTS_PER_RUN + 1}
    finally:
        first.release()
        second.release()


def test_a_port_that_a_stranger_has_is_passed_over() -> None:
    with closing(listening(OURS)):
        block = Block.take()
    assert block.number == 1
    block.release()


def test_when_all_are_taken_the_message_says_what_to_do() -> None:
    blocks = [Block.take() for _ in range(3)]
    with pytest.raises(NoRoom, match=f"all 3 blocks of ports from {OURS} on are taken.*Stop one"):
        Block.take()
    for one in blocks:
        one.release()


def test_a_run_that_was_killed_leaves_nothing_behind() -> None:
    script = (
        "import os, signal\n"
        "from paddle_operator.local import machine\n"
        f"machine.FIRST_PORT = {OURS}\n"
        "block = machine.Block.take()\n"
        "print(block.number, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (killed.stdout, killed.returncode) == ("0\n", -9)
    block = Block.take()
    assert block.number == 0
    block.release()


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


def test_an_address_can_be_listened_on(block: Block) -> None:
    with closing(listening(0, block.address())) as ours:
        assert ours.getsockname()[0] == "127.0.1.1"


def test_what_is_given_back_is_used_again(block: Block) -> None:
    first, second = block.address(), block.address()
    block.give_back(first)
    assert block.address() == first
    assert block.address() not in {first, second}


# Ports.


def test_each_job_has_ports_for_itself(block: Block) -> None:
    ports = [block.port() for _ in range(PORTS_PER_RUN // PORTS_PER_JOB - 1)]
    assert ports[0] > OURS
    assert all(later - earlier >= PORTS_PER_JOB for earlier, later in pairwise(ports))
    assert ports[-1] + PORTS_PER_JOB <= OURS + PORTS_PER_RUN
    with pytest.raises(NoRoom, match="one run has ports for 9 jobs; split the file"):
        block.port()


@pytest.mark.parametrize("offset", [0, 7, PORTS_PER_JOB - 1])
@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "127.0.1.9"])
def test_ports_near_one_that_is_in_use_are_passed_over(block: Block, address: str, offset: int) -> None:
    with closing(listening(OURS + PORTS_PER_JOB + offset, address)):
        assert block.port() == OURS + 2 * PORTS_PER_JOB


# How big it is.


def test_this_machine() -> None:
    here = Machine.here(isolates=True)
    assert here.cpus == len(os.sched_getaffinity(0))
    assert 2**27 < here.memory < 2**50
    assert here.isolates
    assert here.capacity == {"cpu": str(here.cpus), "memory": str(here.memory)}
