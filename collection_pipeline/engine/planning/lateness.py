"""When a job stops waiting: the first tick of its deadline after its run was opened."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

from cronsim import CronSim

from collection_pipeline.engine.planning.graph import Graph, Job


def deadline_of(job: Job, opened_at: datetime) -> datetime | None:
    """When this job stops waiting, as an aware instant. None: never."""
    if job.deadline is None:
        return None
    return _first_tick(job.deadline.cron, job.deadline.timezone, opened_at)


def is_late(job: Job, opened_at: datetime, now: datetime) -> bool:
    """Whether this job's deadline has passed."""
    deadline = deadline_of(job, opened_at)
    return deadline is not None and now >= deadline


def late_jobs(graph: Graph, opened_at: datetime, now: datetime) -> frozenset[str]:
    """The jobs of a run whose deadline has passed."""
    return frozenset(job.job_id for job in graph if is_late(job, opened_at, now))


@lru_cache(maxsize=4096)
def _first_tick(cron: str, timezone: str, opened_at: datetime) -> datetime | None:
    return next(CronSim(cron, opened_at.astimezone(ZoneInfo(timezone))), None)
