"""Runs one container as processes of this machine; none of them outlives the operator.

A program of its own, started by path with `python -I -S`: it imports little, so that a container starts in
some 30 ms. The order comes as one line of JSON on standard input, which then stays open: the letter T on it
sends SIGTERM to the container, and its end (the operator let go, or was killed) kills everything. Answers are
lines of JSON on standard output. Standard error is the container's log.

Where the kernel allows it, the container gets namespaces of its own: mounts, hosts file, host name and
process IDs; then the kernel kills all that is in them with their first process. Elsewhere the keeper adopts
every orphan (a subreaper) and kills them itself, unless somebody kills the keeper.
"""

import ctypes
import json
import os
import select
import signal
import stat
import sys
from contextlib import suppress
from typing import Any

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_MOVE, MS_REC, MS_PRIVATE = 0x20, 0x1000, 0x2000, 0x4000, 0x40000
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWUSER, CLONE_NEWPID = 0x20000, 0x4000000, 0x10000000, 0x20000000
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36

KILLED = 128 + signal.SIGKILL
libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    order = json.loads(read_line(0))
    try:
        if order["isolated"]:
            enter_namespaces()
            if child := os.fork():
                os.waitpid(child, 0)
                return
            succeed(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
            furnish(order)
        else:
            succeed(libc.prctl(PR_SET_CHILD_SUBREAPER, 1))
        process = start(order)
    except OSError as error:
        place = f": {error.filename}" if error.filename else ""
        answer(problem=f"{error.strerror or error}{place}", code=error.errno)
        return
    except ValueError as error:  # a NUL in a word, an = in a name
        answer(problem=str(error))
        return
    answer(started=True)
    answer(exit=watch_over(process))
    if not order["isolated"]:
        kill_descendants()


def read_line(source: int) -> bytes:
    """Nothing stands behind the line: the operator says more only when it has heard that we started."""
    line = bytearray()
    while not line.endswith(b"\n"):
        piece = os.read(source, 1 << 16)
        if not piece:
            sys.exit("the operator is gone")
        line += piece
    return bytes(line)


def answer(**said: object) -> None:
    with suppress(BrokenPipeError):  # nobody listens any more
        os.write(1, json.dumps(said).encode() + b"\n")


def succeed(result: int, what: str = "") -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what or None)


# The container's process.


def start(order: dict[str, Any]) -> int:
    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(order["folder"])
    null = os.open(os.devnull, os.O_RDONLY)
    actions = [(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, 2, 1)]
    # Python ignores these two; a program expects to die of them.
    as_usual = [signal.SIGPIPE, signal.SIGXFSZ]
    command = order["command"]
    return os.posix_spawnp(
        command[0], command, os.environ, file_actions=actions, setsid=True, setsigdef=as_usual
    )


def watch_over(process: int) -> int:
    """The exit code as a shell tells it: 128 + n for signal n. Buries orphans on the way."""
    told, tell = os.pipe()
    os.set_blocking(tell, False)
    signal.set_wakeup_fd(tell)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        code = bury_the_dead(process)
        if code is not None:
            return code
        ready, _, _ = select.select([0, told], [], [])
        if told in ready:
            os.read(told, 4096)
        if 0 in ready:
            if not os.read(0, 1):
                return KILLED
            os.kill(process, signal.SIGTERM)


def bury_the_dead(process: int) -> int | None:
    code = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if pid == 0:
            return code
        if pid == process:
            result = os.waitstatus_to_exitcode(status)
            code = result if result >= 0 else 128 - result


def kill_descendants() -> None:
    """As a subreaper we inherit each orphan, so it ends when there is no child left."""
    while children := descendants(os.getpid()):
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def descendants(process: int) -> list[int]:
    found: list[int] = []
    try:
        with open(f"/proc/{process}/task/{process}/children") as file:
            children = [int(word) for word in file.read().split()]
    except OSError:  # it has just ended
        return found
    for child in children:
        found += [child, *descendants(child)]
    return found


# Namespaces.


def enter_namespaces() -> None:
    flags = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWPID
    # Root needs no user namespace, unless it is root of a container only.
    if os.geteuid() == 0 and libc.unshare(flags) == 0:
        return
    user, group = os.geteuid(), os.getegid()
    succeed(libc.unshare(flags | CLONE_NEWUSER), "a user namespace")
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def furnish(order: dict[str, Any]) -> None:
    mount(None, "/", None, MS_REC | MS_PRIVATE)
    wanted = sorted(order["mounts"], key=lambda one: one["target"])
    # Opened before anything is mounted: a volume at /tmp hides where those of others are.
    sources = [os.open(one["source"], os.O_PATH) if one["source"] else None for one in wanted]
    targets = [os.path.join("/", one["target"]) for one in wanted]
    volumes = [os.path.join(target, "") for target in targets]
    for target, source in zip(targets, sources, strict=True):
        if not os.path.exists(target) and not target.startswith(tuple(volumes)):
            shadow_parent(target, order["scratch"])
            make_mount_point(target, source)
    for one, target, source in zip(wanted, targets, sources, strict=True):
        if not os.path.exists(target):
            # Within a volume it is made in that volume, as a container runtime does it.
            make_mount_point(target, source)
        if source is None:
            mount("tmpfs", target, "tmpfs", MS_NOSUID | MS_NODEV)
            continue
        mount(f"/proc/self/fd/{source}", target, None, MS_BIND | MS_REC)
        os.close(source)
        if one["read_only"]:
            mount(None, target, None, MS_REMOUNT | MS_BIND | MS_RDONLY | locked_flags(target))
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    name = order["host_name"].encode()
    succeed(libc.sethostname(name, len(name)), "the host name")


def mount(source: str | None, target: str, kind: str | None, flags: int) -> None:
    given = [os.fsencode(text) if text is not None else None for text in (source, target, kind)]
    succeed(libc.mount(*given, ctypes.c_ulong(flags), None), target)


def locked_flags(target: str) -> int:
    """What the owner of a file system forbids, a user namespace may not allow again."""
    here = os.statvfs(target).f_flag
    pairs = ((os.ST_NOSUID, MS_NOSUID), (os.ST_NODEV, MS_NODEV), (os.ST_NOEXEC, MS_NOEXEC))
    return sum(flag for known, flag in pairs if here & known)


def shadow_parent(target: str, scratch: str) -> None:
    """The machine has no such path and shall not get one: it is made in a copy that only we see."""
    parent = os.path.dirname(target)
    while not os.path.isdir(parent):
        parent = os.path.dirname(parent)
    shadow(os.path.realpath(parent), scratch)


def make_mount_point(target: str, source: int | None) -> None:
    if source is not None and not stat.S_ISDIR(os.fstat(source).st_mode):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY))
    else:
        os.makedirs(target)


def shadow(folder: str, scratch: str) -> None:
    """Cover a folder by an empty one in memory, in which every entry of the old one is bound again."""
    mount("tmpfs", scratch, "tmpfs", MS_NOSUID | MS_NODEV)
    os.chmod(scratch, os.stat(folder).st_mode & 0o7777)
    for entry in os.scandir(folder):
        with suppress(FileNotFoundError):  # a temporary file that has just gone
            bind_again(entry, os.path.join(scratch, entry.name))
    os.chdir(scratch)
    mount(".", folder, None, MS_MOVE)
    if folder == "/":
        os.chroot(".")


def bind_again(entry: os.DirEntry[str], copy: str) -> None:
    if entry.is_symlink():
        os.symlink(os.readlink(entry.path), copy)
        return
    if entry.is_dir():
        os.mkdir(copy)
    else:
        os.close(os.open(copy, os.O_CREAT | os.O_WRONLY))
    mount(entry.path, copy, None, MS_BIND | MS_REC)


if __name__ == "__main__":
    main()
