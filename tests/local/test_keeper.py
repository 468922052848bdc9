"""Containers as real processes: with namespaces of their own, and without."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from paddle_operator.local.process import CannotStart, ContainerProcess, Mount, Order, can_isolate

PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
PATIENCE = 20.0
"""Others use this machine too."""
PYTHON = (sys.executable, "-I", "-S", "-c")
# A process that left its session and its parent, as daemons do.
DAEMON = (
    "import os, time\nif not os.fork():\n    os.setsid()\n    os.fork()\n    time.sleep(100)\ntime.sleep(100)"
)


@dataclass
class Bench:
    """One container: what it is told, and what it says."""

    folder: Path
    isolated: bool
    marker: str = field(default_factory=lambda: uuid.uuid4().hex)
    """In the command line of its processes, if the test puts it there."""

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def order(self, *command: str, **changes: Any) -> Order:
        scratch = self.folder / "scratch"
        scratch.mkdir(exist_ok=True)
        order = Order(command, {"PATH": PATH}, "/", self.isolated, "a-worker-0", str(scratch))
        return replace(order, **changes)

    async def start(self, *command: str, **changes: Any) -> ContainerProcess:
        return await ContainerProcess.start(self.order(*command, **changes), self.log)

    async def run(self, *command: str, **changes: Any) -> tuple[int, str]:
        """Its exit code, and what it printed."""
        process = await self.start(*command, **changes)
        try:
            async with asyncio.timeout(PATIENCE):
                code = await process.wait()
        finally:
            await process.kill()
        return code, self.log.read_text()

    def processes(self) -> list[int]:
        return [int(entry.name) for entry in Path("/proc").glob("[0-9]*") if self._is_ours(entry)]

    def _is_ours(self, entry: Path) -> bool:
        try:
            return self.marker.encode() in (entry / "cmdline").read_bytes()
        except OSError:  # it has just ended
            return False

    async def until_there_are(self, count: int, patience: float = PATIENCE) -> None:
        deadline = time.monotonic() + patience
        while len(found := self.processes()) != count:
            assert time.monotonic() < deadline, f"{found} run, not {count} processes"
            await asyncio.sleep(0.01)

    async def until_it_says(self, text: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while text not in self.log.read_text():
            assert time.monotonic() < deadline, self.log.read_text()
            await asyncio.sleep(0.01)


@pytest.fixture
async def isolation(tmp_path: Path) -> None:
    scratch = tmp_path / "probe"
    scratch.mkdir()
    if not await can_isolate(scratch):
        pytest.skip("this kernel gives us no namespaces")


@pytest.fixture(params=[False, True], ids=["plain", "isolated"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    """A container of either kind."""
    if request.param:
        request.getfixturevalue("isolation")
    return Bench(tmp_path, isolated=request.param)


@pytest.fixture
def apart(isolation: None, tmp_path: Path) -> Bench:
    """A container with namespaces."""
    return Bench(tmp_path, isolated=True)


# How it ends.


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("exit 0", 0),
        ("exit 3", 3),
        ("exit 255", 255),
        ("kill -KILL $$", 137),
        ("kill -TERM $$", 143),
        ("kill -SEGV $$", 139),
        ("ulimit -c 0; kill -ABRT $$", 134),
    ],
)
async def test_exit_codes(bench: Bench, script: str, code: int) -> None:
    assert await bench.run("sh", "-c", script) == (code, "")


@pytest.mark.parametrize(
    ("command", "changes", "code", "words"),
    [
        (("no-such-program",), {}, 127, "No such file or directory: no-such-program"),
        (("/no/such/program",), {}, 127, "No such file or directory: /no/such/program"),
        (("true",), {"environment": {"PATH": "/nowhere"}}, 127, "No such file or directory: true"),
        (("true",), {"folder": "/no/such/folder"}, 127, "No such file or directory: /no/such/folder"),
        (("/etc/passwd",), {}, 126, "Permission denied: /etc/passwd"),
        (("/etc",), {}, 126, "Permission denied: /etc"),
        (("true", "a\0b"), {}, 127, "embedded null byte"),
        (("true",), {"environment": {"PATH": PATH, "A=B": "x"}}, 127, "illegal environment variable name"),
    ],
)
async def test_what_cannot_be_started(
    bench: Bench, command: tuple[str, ...], changes: dict[str, Any], code: int, words: str
) -> None:
    with pytest.raises(CannotStart) as caught:
        await bench.start(*command, **changes)
    assert (caught.value.code, str(caught.value)) == (code, words)
    assert bench.log.read_text() == ""


async def test_an_order_may_be_long(bench: Bench) -> None:
    """Longer than what a pipe holds."""
    code, said = await bench.run("sh", "-c", "echo ${#A}", environment={"PATH": PATH, "A": "x" * 100_000})
    assert (code, said) == (0, "100000\n")


# What it sees.


async def test_its_environment_is_what_was_ordered_and_nothing_else(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THE_OPERATOR", "secret")
    wanted = {"PATH": PATH, "A": "1", "EMPTY": "", "LINES": "a\nb", "EQUALS": "x=y", "WORD": "gräben"}
    code, said = await bench.run("env", "-0", environment=wanted)
    assert code == 0
    assert dict(one.split("=", 1) for one in said.rstrip("\0").split("\0")) == wanted


async def test_its_log_has_both_outputs_in_their_order(bench: Bench) -> None:
    script = "echo one; echo two >&2; echo three; echo -n four >&2"
    assert await bench.run("sh", "-c", script) == (0, "one\ntwo\nthree\nfour")


async def test_the_log_is_added_to(bench: Bench) -> None:
    await bench.run("echo", "first")
    assert await bench.run("echo", "second") == (0, "first\nsecond\n")


async def test_its_working_folder(bench: Bench) -> None:
    there = bench.folder / "it's here"
    there.mkdir()
    assert await bench.run("sh", "-c", "pwd; : > made", folder=str(there)) == (0, f"{there}\n")
    assert (there / "made").exists()


async def test_its_input_is_empty(bench: Bench) -> None:
    assert await bench.run("cat") == (0, "")


async def test_it_inherits_no_open_file(bench: Bench) -> None:
    """Standard input, output and error, and the folder that ls reads."""
    assert await bench.run("ls", "/proc/self/fd") == (0, "0\n1\n2\n3\n")


async def test_signals_are_as_a_program_expects_them(bench: Bench) -> None:
    """Python ignores some, and the keeper is Python."""
    code, said = await bench.run("grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status")
    assert code == 0
    blocked, ignored = (int(line.split()[1], 16) for line in said.splitlines())
    assert blocked == 0
    asked = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGCHLD)
    assert [number for number in asked if ignored >> (number - 1) & 1] == []


# SIGTERM and SIGKILL.


async def test_terminate_asks(bench: Bench) -> None:
    script = "trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.02; done"
    process = await bench.start("sh", "-c", script)
    await bench.until_it_says("ready")
    process.terminate()
    assert await process.wait() == 7
    assert bench.log.read_text() == "ready\nbye\n"
    process.terminate()  # too late, and no fault
    await process.kill()


async def test_terminate_ends_what_has_no_handler(bench: Bench) -> None:
    process = await bench.start("sleep", "100")
    process.terminate()
    assert await process.wait() == 143
    await process.kill()


async def test_kill_does_not_ask(bench: Bench) -> None:
    process = await bench.start("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.02; done")
    await bench.until_it_says("ready")
    process.terminate()
    await process.kill()
    assert await process.wait() == 137


async def test_kill_leaves_no_descendant(bench: Bench) -> None:
    process = await bench.start(*PYTHON, DAEMON, bench.marker)
    await bench.until_there_are(3)
    await process.kill()
    assert bench.processes() == []


async def test_what_runs_in_the_background_ends_with_the_main_process(bench: Bench) -> None:
    script = f"{sys.executable} -I -S -c '{DAEMON}' $0 & read line; exit 5"
    fifo = bench.folder / "fifo"
    os.mkfifo(fifo)
    process = await bench.start("sh", "-c", f"exec < {fifo}; {script}", bench.marker)
    with fifo.open("w") as main:
        await bench.until_there_are(4)
        main.write("go\n")
    assert await process.wait() == 5
    assert bench.processes() == []
    await process.kill()


OPERATOR = """
import asyncio, json, os
from pathlib import Path
from paddle_operator.local.process import ContainerProcess, Order

async def main():
    process = await ContainerProcess.start(Order(**json.loads(os.environ["ORDER"])), Path(os.environ["LOG"]))
    await process.wait()

asyncio.run(main())
"""


@pytest.fixture
def operator(bench: Bench) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that runs a container with daemons in it."""
    order = bench.order(*PYTHON, DAEMON, bench.marker)
    told = {"ORDER": json.dumps(asdict(order)), "LOG": str(bench.log)}
    with subprocess.Popen([sys.executable, "-c", OPERATOR], env=os.environ | told) as process:
        yield process
        process.kill()


async def test_nothing_outlives_an_operator_that_is_killed(
    bench: Bench, operator: subprocess.Popen[bytes]
) -> None:
    await bench.until_there_are(3)
    operator.kill()
    await bench.until_there_are(0, patience=2)


async def test_nothing_outlives_a_keeper_that_is_killed(apart: Bench) -> None:
    process = await apart.start(*PYTHON, DAEMON, apart.marker)
    await apart.until_there_are(3)
    os.kill(process._keeper.pid, signal.SIGKILL)
    assert await process.wait() == 137
    await apart.until_there_are(0, patience=2)
    await process.kill()


# Mounts.

NEW = "/no-such-folder-xyz"
"""Not on this machine, and not made on it."""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "given").write_text("from outside")
    return folder


def outside(script: str) -> str:
    return subprocess.run(
        ["sh", "-c", script], env={"PATH": PATH}, capture_output=True, text=True, check=True
    ).stdout


def is_on_the_machine(path: str) -> bool:
    return Path(path).exists()


def traces_on_the_machine(source: Path) -> list[str]:
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    left = [line for line in mounts if str(source) in line or "no-such" in line]
    return left + [
        str(path) for folder in ("/", "/etc", "/var/run") for path in Path(folder).glob("no-such*")
    ]


@pytest.mark.parametrize(
    "target", [NEW, f"{NEW}/deep/er", "/etc/no-such-xyz", "/var/run/no-such-xyz/deep", "/mnt"]
)
async def test_a_mount_is_seen_inside_and_written_through(apart: Bench, source: Path, target: str) -> None:
    script = f"cat {target}/given; echo made > {target}/new"
    code, said = await apart.run("sh", "-c", script, mounts=(Mount(target, str(source)),))
    assert (code, said) == (0, "from outside")
    assert (source / "new").read_text() == "made\n"
    assert traces_on_the_machine(source) == []
    assert not is_on_the_machine(f"{target}/given")


async def test_what_stands_beside_a_new_mount_point_is_still_there(apart: Bench, source: Path) -> None:
    """As seen by ls, and with its contents."""
    script = "ls -A / | grep -v no-such; cat /etc/passwd; ls -A /proc/self > /dev/null; : > /dev/null"
    code, said = await apart.run("sh", "-c", script, mounts=(Mount(NEW, str(source)),))
    assert code == 0
    assert said == outside("ls -A /; cat /etc/passwd")


async def test_two_new_mount_points_beside_each_other(apart: Bench, source: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    mounts = (
        Mount(f"{NEW}/a", str(source)),
        Mount(f"{NEW}-2", str(tmp_path / "other")),
        Mount(f"{NEW}/b", ""),
    )
    code, said = await apart.run(
        "sh", "-c", f"cat {NEW}/a/given; : > {NEW}-2/made; : > {NEW}/b/lost; ls {NEW}", mounts=mounts
    )
    assert (code, said) == (0, "from outsidea\nb\n")
    assert [file.name for file in (tmp_path / "other").iterdir()] == ["made"]


async def test_a_mount_within_a_mount(apart: Bench, source: Path, tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    mounts = (Mount(NEW, str(source)), Mount(f"{NEW}/inner", str(tmp_path / "inner")))
    script = f"echo 1 > {NEW}/made; echo 2 > {NEW}/inner/made"
    assert await apart.run("sh", "-c", script, mounts=mounts) == (0, "")
    assert (tmp_path / "inner" / "made").read_text() == "2\n"
    assert (source / "made").read_text() == "1\n"


async def test_a_folder_that_is_used_by_the_container_itself(apart: Bench, source: Path) -> None:
    """Log, scratch and sources lie in the folder that is covered."""
    target = apart.folder / "new"
    code, said = await apart.run("cat", f"{target}/given", mounts=(Mount(str(target), str(source)),))
    assert (code, said) == (0, "from outside")
    assert not target.exists()


async def test_a_read_only_mount(apart: Bench, source: Path) -> None:
    mounts = (Mount(NEW, str(source), read_only=True),)
    code, said = await apart.run("sh", "-c", f"cat {NEW}/given; : > {NEW}/new || exit 4", mounts=mounts)
    assert code in {2, 4}
    assert said.startswith("from outside")
    assert "Read-only file system" in said
    assert not (source / "new").exists()
    (source / "new").touch()  # outside it is as before


@pytest.mark.parametrize("target", ["/etc/passwd", f"{NEW}/one.conf"])
async def test_a_file_is_mounted_alone(apart: Bench, source: Path, target: str) -> None:
    mounts = (Mount(target, str(source / "given")),)
    assert await apart.run("cat", target, mounts=mounts) == (0, "from outside")
    assert "from outside" not in outside("cat /etc/passwd")


@pytest.mark.parametrize("target", ["/dev/shm", f"{NEW}/memory"])
async def test_memory_is_empty_and_gone_with_the_container(apart: Bench, target: str) -> None:
    script = f"stat -f -c %T {target}; ls -A {target}; echo {apart.marker} > {target}/{apart.marker}"
    for _ in range(2):
        apart.log.unlink(missing_ok=True)
        assert await apart.run("sh", "-c", script, mounts=(Mount(target, ""),)) == (0, "tmpfs\n")
    assert not is_on_the_machine(f"{target}/{apart.marker}")


async def test_a_missing_source_is_said(apart: Bench) -> None:
    with pytest.raises(CannotStart, match="No such file or directory: /no-such-folder-xyz/source"):
        await apart.start("true", mounts=(Mount("/mnt", f"{NEW}/source"),))


# Names.


async def test_its_hosts_file_tells_names(apart: Bench, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 localhost\n127.0.1.77 mnist-worker-7\n")
    script = "import socket; print(socket.gethostbyname('mnist-worker-7'))"
    mounts = (Mount("/etc/hosts", str(hosts)),)
    assert await apart.run(*PYTHON, script, mounts=mounts) == (0, "127.0.1.77\n")
    assert "mnist-worker-7" not in outside("cat /etc/hosts")


async def test_its_host_name_is_its_own(apart: Bench) -> None:
    before = os.uname().nodename
    assert await apart.run("uname", "-n") == (0, "a-worker-0\n")
    assert os.uname().nodename == before != "a-worker-0"


async def test_it_sees_no_process_but_its_own(apart: Bench) -> None:
    """The keeper is the first, the shell the second."""
    assert await apart.run("sh", "-c", "echo /proc/[0-9]*") == (0, "/proc/1 /proc/2\n")


async def test_without_namespaces_names_are_the_machines(tmp_path: Path) -> None:
    assert await Bench(tmp_path, isolated=False).run("uname", "-n") == (0, f"{os.uname().nodename}\n")
