"""Where an artifact came from: everything it was built on, however far up, down to the calls that were paid for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
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

    def collected_at(self, consumed: Iterable[Artifact]) -> datetime | None:
        """When the last of what the given artifacts were made from was collected; None without artifacts."""
        with self.database.read() as connection:
            return collected_at(connection, _identify(connection, consumed))


def collected_at(connection: sa.Connection, ids: Sequence[int] | sa.Select[int]) -> datetime | None:
    """`Lineage.collected_at` inside a transaction, of artifacts by their id. One query, however long the lineage.

    Collected is what asked a source, and what was made of nothing: what is only derived is as old as that.
    """
    start = sa.select(artifacts.c.artifact_id).where(artifacts.c.artifact_id.in_(ids)).cte("lineage", recursive=True)
    consumed = artifact_inputs.c.input_artifact_id
    whole = start.union(
        sa.select(consumed).where(artifact_inputs.c.artifact_id == start.c.artifact_id, consumed.is_not(None))
    )
    has_inputs = sa.exists().where(artifact_inputs.c.artifact_id == artifacts.c.artifact_id, consumed.is_not(None))
    newest = sa.select(sa.func.max(artifacts.c.published_at)).where(
        artifacts.c.artifact_id.in_(sa.select(whole.c.artifact_id)),
        sa.exists().where(_bought_for(artifacts.c)) | ~has_inputs,
    )
    return connection.execute(newest).scalar()


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


def _bought_for(artifact: Any) -> sa.ColumnElement[bool]:
    """The condition on `requests` of the answers behind an artifact: a row of `artifacts`, or its columns."""
    return sa.and_(
        requests.c.run_id == artifact.run_id,
        requests.c.job_id == artifact.job_id,
        requests.c.generation.between(artifact.oldest_generation, artifact.generation),
        requests.c.source == artifact.source,
        requests.c.kind == OK,
    )


def _ancestor(connection: sa.Connection, row: sa.Row[Any]) -> Ancestor:
    bought = _bought_for(row)
    sample = sa.select(requests.c.request_id).where(bought).order_by(requests.c.id).limit(REQUEST_IDS)
    return Ancestor(
        artifact_of(row),
        row.row_count,
        row.source,
        row.credits_charged,
        row.checks,
        connection.execute(sa.select(sa.func.count()).where(bought)).scalar_one(),
        tuple(connection.execute(sample).scalars()),
    )
