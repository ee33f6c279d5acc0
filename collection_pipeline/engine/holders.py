"""Who works on a job: one process of one Dagster run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Holder:
    """The Dagster run that holds a job, and its process on `host` (pid, and its start in seconds since the epoch)."""

    dagster_run_id: str
    host: str
    pid: int
    process_started_at: float

    def __str__(self) -> str:
        return f"Dagster run {self.dagster_run_id} (process {self.pid} on {self.host})"
