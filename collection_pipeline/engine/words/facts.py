"""What the words about a run need and its decisions do not: reasons, times, holders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo


@dataclass(frozen=True, slots=True)
class JobFacts:
    """What the store knows of a job's last attempt and decisions do not need.

    `reason`: why it failed, in one line. `holder`: the Dagster run that made it. `retracted_inputs`: upstreams whose
    artifact it stands on although that was withdrawn since. `lacks_answers`: its newest version has some of the answers
    it asked for and not others, so that a rerun may buy only those, and no later attempt set out to buy all. `stopped`:
    it did not fail but was interrupted, or its process ended: it need only go on. `warnings`: what the soft checks that
    its current artifact does not pass say, by their names; what was decided about its inputs is not among them.
    """

    reason: str | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    holder: str | None = None
    retracted_inputs: tuple[str, ...] = ()
    lacks_answers: bool = False
    stopped: bool = False
    warnings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts by job_id, and the zone of the run, in which people read its times."""

    jobs: Mapping[str, JobFacts] = field(default_factory=dict)
    timezone: tzinfo = UTC

    @property
    def warnings(self) -> Mapping[str, Mapping[str, str]]:
        """Each job's warnings, by job_id."""
        return {job_id: facts.warnings for job_id, facts in self.jobs.items()}

    def of(self, job_id: str) -> JobFacts:
        return self.jobs.get(job_id, _NO_FACTS)


_NO_FACTS = JobFacts()
