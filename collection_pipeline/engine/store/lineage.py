"""Where an artifact came from: everything it was built on, however far up, down to the calls that were paid for."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from collection_pipeline.engine.planning.state import Artifact
from collection_pipeline.engine.store.ledger import OK
from collection_pipeline.engine.store.part import StorePart
from collection_pipeline.engine.store.references import artifact_of
from collection_pipeline.engine.store.schema import artifact_inputs, artifacts, requests

REQUEST_IDS = 5
"""Request ids shown of each ancestor; the ledger has them all."""


@dataclass(frozen=True, slots=True)
class Ancestor:
    """One artifact that another was built on, and the paid calls behind it (some of `request_count` ids)."""

    artifact: Artifact
    row_count: int
    source: str | None
    published_at: datetime
    credits_charged: int
    checks: list[dict[str, Any]]
    request_count: int
    request_ids: tuple[str, ...]


class Lineage(StorePart):
    """Walking the consumed inputs upwards."""

    def lineage(self, consumed: Iterable[Artifact]) -> list[Ancestor]:
        """The given artifacts and all they stand on, upstreams first. A few queries per level and ancestor."""
        with self.database.read() as connection:
            ids = _identify(connection, consumed)
            found: dict[int, None] = {}
            while ids:
                for artifact_id in ids:
                    found.pop(artifact_id, None)  # what is reached again from further up belongs further up
                    found[artifact_id] = None
                ids = _inputs_of(connection, ids)
            rows = connection.execute(sa.select(artifacts).where(artifacts.c.artifact_id.in_(list(found))))
            by_id = {row.artifact_id: row for row in rows}
            return [_ancestor(connection, by_id[artifact_id]) for artifact_id in reversed(found)]


def _identify(connection: sa.Connection, consumed: Iterable[Artifact]) -> list[int]:
    wanted = [(each.run_id, each.job_id, each.version) for each in consumed]
    key = sa.tuple_(artifacts.c.run_id, artifacts.c.job_id, artifacts.c.version)
    return list(connection.execute(sa.select(artifacts.c.artifact_id).where(key.in_(wanted))).scalars())


def _inputs_of(connection: sa.Connection, ids: Collection[int]) -> list[int]:
    query = (
        sa.select(artifact_inputs.c.input_artifact_id)
        .where(artifact_inputs.c.artifact_id.in_(ids), artifact_inputs.c.input_artifact_id.is_not(None))
        .distinct()
    )
    return list(connection.execute(query).scalars())


def _ancestor(connection: sa.Connection, row: sa.Row[Any]) -> Ancestor:
    bought = (
        (requests.c.run_id == row.run_id)
        & (requests.c.job_id == row.job_id)
        & requests.c.generation.between(row.oldest_generation, row.generation)
        & (requests.c.source == row.source)
        & (requests.c.kind == OK)
    )
    sample = sa.select(requests.c.request_id).where(bought).order_by(requests.c.id).limit(REQUEST_IDS)
    return Ancestor(
        artifact_of(row),
        row.row_count,
        row.source,
        row.published_at,
        row.credits_charged,
        row.checks,
        connection.execute(sa.select(sa.func.count()).where(bought)).scalar_one(),
        tuple(connection.execute(sample).scalars()),
    )
