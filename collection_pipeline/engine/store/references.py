"""Artifacts as the tables hold them: rows of `artifacts`, and references inside the JSON of `jobs.attempted`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from collection_pipeline.engine.planning.state import Artifact, Inputs
from collection_pipeline.engine.store.schema import artifacts

ARTIFACT_COLUMNS = (
    artifacts.c.artifact_id,
    artifacts.c.job_id,
    artifacts.c.run_id,
    artifacts.c.version,
    artifacts.c.as_of,
    artifacts.c.content_hash,
    artifacts.c.degraded,
)


def artifact_of(row: Any) -> Artifact:
    """The artifact in a result row that has `ARTIFACT_COLUMNS`."""
    return Artifact(row.job_id, row.run_id, row.version, row.as_of, row.content_hash, row.degraded)


def inputs_to_json(inputs: Inputs) -> dict[str, Any]:
    """Consumed inputs, for `jobs.attempted`."""
    return {upstream: None if artifact is None else _to_json(artifact) for upstream, artifact in inputs.items()}


def inputs_from_json(stored: Mapping[str, Any] | None) -> dict[str, Artifact | None] | None:
    """What `inputs_to_json` wrote."""
    if stored is None:
        return None
    return {upstream: None if item is None else _from_json(item) for upstream, item in stored.items()}


def _to_json(artifact: Artifact) -> dict[str, Any]:
    return {
        "job_id": artifact.job_id,
        "run_id": artifact.run_id,
        "version": artifact.version,
        "as_of": artifact.as_of.astimezone(UTC).isoformat(),
        "content_hash": artifact.content_hash,
        "degraded": artifact.degraded,
    }


def _from_json(item: Mapping[str, Any]) -> Artifact:
    return Artifact(**{**item, "as_of": datetime.fromisoformat(item["as_of"])})
