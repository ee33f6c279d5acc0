"""Who works on a job: a Dagster run, in one process or between two."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Holder:
    """The Dagster run that holds a job, and its process on `host`: pid, and its start in seconds since the host booted.

    Both are None from a failed try to the next one: an executor may use a process of its own for each.
    """

    dagster_run_id: str
    host: str
    pid: int | None
    process_started_at: float | None

    def __str__(self) -> str:
        doing = "about to try again" if self.pid is None else f"process {self.pid}"
        return f"Dagster run {self.dagster_run_id} ({doing} on {self.host})"
