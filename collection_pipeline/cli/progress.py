"""What goes on while jobs run: bars on a terminal, plain lines elsewhere, always on stderr.

Starts and ends are read off the state table by a thread that looks a few times a second, so they are told whoever runs
the job: this process, another one, or Dagster. Only the calls within a job are reported by the job itself.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TextIO

from collection_pipeline.cli.streams import lossy
from collection_pipeline.cli.terminal import console, inert
from collection_pipeline.engine.counting import counted

if TYPE_CHECKING:
    from datetime import datetime

    from rich.progress import TaskID

    from collection_pipeline.engine.store import JobView, Store

LOOK_EVERY_S = 0.2

CALLS_EVERY_S = 30.0
"""Between two plain lines about the calls of one job."""


class Display(Protocol):
    """Where progress is shown."""

    def say(self, line: str) -> None:
        """Show one line."""

    def calls(self, job_id: str, ended: int, known: int) -> None:
        """Show how far a job's calls are."""

    def started(self, job_id: str) -> None:
        """A job started."""

    def ended(self, job_id: str) -> None:
        """A job ended."""


class PlainLines:
    """For files and pipes."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._next_line: dict[str, float] = {}

    def say(self, line: str) -> None:
        self._stream.write(f"{inert(line)}\n")

    def calls(self, job_id: str, ended: int, known: int) -> None:
        now = time.monotonic()
        if now >= self._next_line.setdefault(job_id, now + CALLS_EVERY_S):
            self._next_line[job_id] = now + CALLS_EVERY_S
            self.say(f"{job_id}: {ended} of {counted(known, 'call')}")

    def started(self, job_id: str) -> None:
        self._next_line.pop(job_id, None)

    def ended(self, job_id: str) -> None:
        self._next_line.pop(job_id, None)


class Bars:
    """For a terminal: a bar for each running job beneath the lines."""

    def __init__(self, stream: TextIO) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        self.progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console(stream),
            transient=True,
        )
        self._tasks: dict[str, TaskID] = {}

    def say(self, line: str) -> None:
        self.progress.console.print(inert(line), soft_wrap=True)

    def calls(self, job_id: str, ended: int, known: int) -> None:
        self.started(job_id)
        self.progress.update(self._tasks[job_id], completed=ended, total=known)

    def started(self, job_id: str) -> None:
        if job_id not in self._tasks:
            self._tasks[job_id] = self.progress.add_task(inert(job_id), total=None)

    def ended(self, job_id: str) -> None:
        task = self._tasks.pop(job_id, None)
        if task is not None:
            self.progress.remove_task(task)


@contextmanager
def shown(store: Store, run_id: str) -> Iterator[Display]:
    """Show the progress of a run, and this package's own log, until the block ends."""
    stream = lossy(sys.stderr)  # Dagster turns file descriptor 2 into a log file while steps run
    display = Bars(stream) if stream.isatty() else PlainLines(stream)
    handler = _LogLines(display.say)
    log = logging.getLogger("collection_pipeline")
    log.addHandler(handler)
    log.propagate = False
    watch = _Watch(store, run_id, display)
    try:
        if isinstance(display, Bars):
            with display.progress, watch:
                yield display
        else:
            with watch:
                yield display
    finally:
        log.removeHandler(handler)
        log.propagate = True
        stream.close()


class _LogLines(logging.Handler):
    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__()
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        level = f"{record.levelname.lower()}: " if record.levelno >= logging.WARNING else ""
        self._say(level + record.getMessage())


class _Watch:
    """Tells a display about every start and end of a job of one run."""

    def __init__(self, store: Store, run_id: str, display: Display) -> None:
        view = store.run_view(run_id)
        self._store, self._run_id, self._timezone, self._display = store, run_id, view.timezone, display
        self._seen = {job.job_id: _mark(job) for job in view.jobs}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep_looking, name="progress", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._look()

    def _keep_looking(self) -> None:
        while not self._over.wait(LOOK_EVERY_S):
            self._look()

    def _look(self) -> None:
        from sqlalchemy.exc import SQLAlchemyError

        from collection_pipeline.engine.store import StoreError

        try:
            jobs = self._store.run_view(self._run_id).jobs
        except (StoreError, SQLAlchemyError):
            return  # whoever works with the store says so
        for job in jobs:
            before, after = self._seen.get(job.job_id, _NOT_SEEN), _mark(job)
            if after == before:
                continue
            self._seen[job.job_id] = after
            if job.attempts > before[0]:  # said also of a job that started and ended since the last look
                self._display.started(job.job_id)
                self._display.say(f"{self._clock(job.started_at)} {job.job_id} started")
            if job.outcome not in ("running", "pending"):
                self._display.ended(job.job_id)
                self._display.say(f"{self._clock(job.finished_at)} {job.job_id} {self._ending(job)}")

    def _ending(self, job: JobView) -> str:
        if job.outcome == "failed" and job.reason:
            return f"failed: {job.reason}"
        if job.outcome != "done" or job.current is None:
            return job.outcome  # skipped: why its upstream failed has been told
        made = job.current
        parts = [
            counted(made.row_count, "row"),
            f"version {made.artifact.version}",
            counted(made.credits_charged, "credit"),
        ]
        if made.credits_reused:
            parts.append(f"{made.credits_reused} saved by reuse")
        if made.artifact.degraded:
            as_of = made.artifact.as_of.astimezone(self._timezone)
            parts.append(f"degraded: data as of {as_of:%Y-%m-%d %H:%M}")
        return f"done: {', '.join(parts)}"

    def _clock(self, instant: datetime | None) -> str:
        return "" if instant is None else f"{instant.astimezone(self._timezone):%H:%M:%S}"


_NOT_SEEN = (0, "pending", None)


def _mark(job: JobView) -> tuple[int, str, datetime | None]:
    """What changes when an attempt starts or ends."""
    return job.attempts, job.outcome, job.finished_at
