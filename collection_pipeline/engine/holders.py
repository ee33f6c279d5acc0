"""Who works on a job: a Dagster run, in one process or between two; and whether that process still lives."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from functools import cache

import psutil


@dataclass(frozen=True, slots=True)
class Holder:
    """The Dagster run that holds a job, and its process on `host`: pid, and its start in seconds since the host booted.

    Both are None from a failed try to the next one: an executor may use a process of its own for each. `host` is as
    `this_host` has it.
    """

    dagster_run_id: str
    host: str
    pid: int | None
    process_started_at: float | None

    def __str__(self) -> str:
        doing = "about to try again" if self.pid is None else f"process {self.pid}"
        return f"Dagster run {self.dagster_run_id} ({doing} on {self.host.partition(_IN)[0]})"


_SAME_START_S = 0.005
"""Half a tick of the kernel's clock: starts that differ by less are the same."""


_IN = "/"
"""Between a host's name, in which it cannot be, and the namespace of the pids."""


def this_host() -> str:
    """Where a pid says who is meant: the host by name and, on Linux, the namespace of its pids, since containers may
    share the name of their host and see nothing of each other's processes."""
    try:
        return f"{socket.gethostname()}{_IN}{os.stat('/proc/self/ns/pid').st_ino}"  # noqa: PTH116 - no path of ours
    except FileNotFoundError:
        return socket.gethostname()


@cache
def this_process() -> tuple[str, int, float]:
    """Host, pid and start of this process, as `Holder` has them: a pid alone is used again by others."""
    return this_host(), os.getpid(), _started(os.getpid())


def _started(pid: int) -> float:
    """When a process was started, in seconds since the host booted: setting the clock does not change it.

    psutil adds the boot time, which moves with the clock, to what the kernel says. Raises `psutil.NoSuchProcess`.
    """
    return psutil.Process(pid).create_time() - psutil.boot_time()


def process_is_gone(holder: Holder) -> bool:
    """Whether the holder's process on this host has ended. False where there is none, and for other hosts and other
    containers: nothing can be said from here. One that nobody has waited for yet (a zombie) has ended too."""
    pid, started = holder.pid, holder.process_started_at
    if pid is None or started is None or holder.host != this_host():
        return False
    try:
        is_another = abs(_started(pid) - started) > _SAME_START_S
        return is_another or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
