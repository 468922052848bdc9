"""What the kernel says of processes: CPU and memory."""

import os
from collections.abc import Iterable
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_seconds(processes: Iterable[int]) -> float:
    """Of user and kernel. The fields are counted from behind the name, which may have spaces in it."""
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in processes]
    return sum(int(one[11]) + int(one[12]) for one in fields) / TICKS_PER_SECOND


def machine_cpu_seconds() -> float:
    """Of everybody, since the machine was started; idling and waiting for disks are no use of it.

    What the host of a virtual machine took for others counts: it was not there for us.
    """
    user, nice, system, _idle, _wait, interrupts, soft_interrupts, stolen, *_ = map(
        int, Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    )
    return (user + nice + system + interrupts + soft_interrupts + stolen) / TICKS_PER_SECOND


def processor() -> str:
    """Its name, as a person knows it; of some machines the kernel has none."""
    told = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(": ")[2] for line in told if line.startswith("model name")), "unknown")


def resident_mib(processes: Iterable[int]) -> float:
    return _status_mib(processes, "VmRSS:")


def peak_resident_mib(processes: Iterable[int]) -> float:
    """The most that it ever was."""
    return _status_mib(processes, "VmHWM:")


def _status_mib(processes: Iterable[int], field: str) -> float:
    lines = [line for pid in processes for line in Path(f"/proc/{pid}/status").read_text().splitlines()]
    return sum(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024
