"""What a measurement is: a figure, the line it should keep, and how to take it on a machine that others use as well."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TypeVar

ROOT = Path(__file__).parents[1]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table. `at_least` and `at_most` are what it should keep; a figure without either only informs."""

    name: str
    value: float
    unit: str
    at_least: float | None = None
    at_most: float | None = None
    note: str = ""

    @property
    def kept(self) -> bool | None:
        """Whether it keeps its line; None without one."""
        if self.at_least is None and self.at_most is None:
            return None
        low = -float("inf") if self.at_least is None else self.at_least
        high = float("inf") if self.at_most is None else self.at_most
        return low <= self.value <= high


@dataclass(frozen=True, slots=True)
class Cost:
    """What a process took: seconds on the wall, and of processor time with that of its ended children."""

    wall_s: float
    cpu_s: float


def seconds(work: Callable[[], object]) -> float:
    """How long `work` takes on the wall."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def interleaved(rounds: int, **parts: Callable[[], T]) -> dict[str, list[T]]:
    """Take every part once a round, A B A B …, so that a busy moment of the machine does not meet one of them alone."""
    taken: dict[str, list[T]] = {name: [] for name in parts}
    for _ in range(rounds):
        for name, part in parts.items():
            taken[name].append(part())
    return taken


def ratio(ours: Sequence[float], peer: Sequence[float]) -> tuple[float, str]:
    """The median of the ratios of each round, and the range of those as a note."""
    ratios = [mine / theirs for mine, theirs in zip(ours, peer, strict=True)]
    return median(ratios), f"{len(ratios)} rounds: {min(ratios):.2f} to {max(ratios):.2f}"


def process_cost(arguments: Sequence[str], env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Cost:
    """Run a command to its end, which must be a good one, and say what it took."""
    before = os.times()
    started = time.perf_counter()
    done = subprocess.run(arguments, env=env, cwd=cwd, check=False, capture_output=True, text=True)
    wall_s = time.perf_counter() - started
    after = os.times()
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return Cost(wall_s, used)


def peak_mb() -> float:
    """The most memory this process ever held, in MB of 10^6 bytes.

    From /proc: `ru_maxrss` also counts what the parent held before it became this program.
    """
    status = Path("/proc/self/status").read_text()
    kilobytes = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(kilobytes) * 1024 / 1e6


@contextmanager
def workplace() -> Iterator[dict[str, str]]:
    """An environment for processes that keep all they write in one temporary folder, whatever the caller's settings."""
    with TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("COLLECTION_", "SERPBASE_", "DAGSTER_", "ALERT_URLS"))
        }
        yield kept | {
            "COLLECTION_DATA": f"{folder}/data",
            "DAGSTER_HOME": f"{folder}/home",
            "PYTHONPATH": str(ROOT),
            "TMPDIR": folder,
        }


def python(*arguments: str) -> list[str]:
    """A command of this very interpreter."""
    return [sys.executable, *arguments]
