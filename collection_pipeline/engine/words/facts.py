"""What the words about a run need and its decisions do not: reasons, times, holders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo


@dataclass(frozen=True, slots=True)
class JobFacts:
    """What the store knows of a job's last attempt and decisions do not need.

    `reason`: why it failed, in one line. `holder`: the Dagster run that made it. `retracted_inputs`: upstreams whose
    artifact it stands on although that was withdrawn since. `repairable`: its newest version failed for want of
    answers, so that a rerun may keep those it has and buy only what is missing.
    """

    reason: str | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    holder: str | None = None
    retracted_inputs: tuple[str, ...] = ()
    repairable: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts by job_id, and the zone in which people read times."""

    jobs: Mapping[str, JobFacts] = field(default_factory=dict)
    timezone: tzinfo = UTC

    def of(self, job_id: str) -> JobFacts:
        return self.jobs.get(job_id, _NO_FACTS)


_NO_FACTS = JobFacts()
