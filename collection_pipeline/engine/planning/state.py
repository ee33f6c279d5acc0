"""The state of one run, as far as decisions need it: artifacts, jobs and what earlier runs left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

Status = Literal["pending", "running", "done", "failed", "skipped"]


@dataclass(frozen=True, slots=True)
class Artifact:
    """A usable artifact: its identity, the moment its data speaks of (UTC), and the hash of its content."""

    job_id: str
    run_id: str
    version: int
    as_of: datetime
    content_hash: str
    degraded: bool = False

    def stands_on_older_data(self, run_id: str) -> bool:
        """Whether it is of another run than `run_id`, which can only be an earlier one, or made from such data."""
        return self.degraded or self.run_id != run_id

    def same_data(self, other: Artifact | None) -> bool:
        """Whether consuming `other` instead would change nothing: same run, equal content, equal as_of."""
        return (
            other is not None
            and self.content_hash == other.content_hash
            and self.run_id == other.run_id
            and self.as_of == other.as_of
        )


Inputs = Mapping[str, Artifact | None]
"""What an attempt consumed, by upstream job_id; None where it had nothing of that upstream."""


def differs(artifact: Artifact | None, before: Artifact | None) -> bool:
    """Whether one is other data than the other; None is none."""
    return before is not None if artifact is None else not artifact.same_data(before)


def same_inputs(inputs: Inputs, before: Inputs) -> bool:
    """Whether both have the same data of the same upstreams."""
    return inputs.keys() == before.keys() and not any(map(differs, inputs.values(), map(before.get, inputs)))


@dataclass(frozen=True, slots=True)
class JobState:
    """One row of the state table, as far as decisions need it.

    `status`: running, or how the last attempt ended; pending if there was none that still counts.
    `in_flight`: running, or planned by a Dagster run that is not over (`planning.flight`).
    `current`: the newest usable artifact of this run.
    `attempted`: what the last attempt consumed, or would have when it was skipped or never got to start; None exactly
    when there was no attempt that still counts.
    """

    status: Status = "pending"
    in_flight: bool = False
    current: Artifact | None = None
    attempted: Inputs | None = None


@dataclass(frozen=True, slots=True)
class RunState:
    """One run: its moment and opening (aware), its jobs, and what its degrade edges may fall back to, by job_id.

    A fallback is the newest usable artifact of an earlier run, of those inside their shelf life if there are any.
    """

    run_id: str
    moment: datetime
    opened_at: datetime
    jobs: Mapping[str, JobState] = field(default_factory=dict)
    fallbacks: Mapping[str, Artifact] = field(default_factory=dict)
