"""Withdrawing a version found to be wrong, and with it everything that was built on it.

An artifact goes when it consumed one that goes, in whatever run, however far down. The exception is an input consumed
over an edge that says `pin`: such an artifact stands, and is reported as built on retracted data.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from collection_pipeline.engine.planning.state import Artifact
from collection_pipeline.engine.store.database import RETRACTION, advisory_lock
from collection_pipeline.engine.store.errors import UnknownArtifactError
from collection_pipeline.engine.store.part import StorePart
from collection_pipeline.engine.store.references import ARTIFACT_COLUMNS, artifact_of, inputs_to_json
from collection_pipeline.engine.store.runs import touch
from collection_pipeline.engine.store.schema import artifact_inputs, artifacts, jobs, runs
from collection_pipeline.engine.store.states import lacks_fallback


@dataclass(frozen=True, slots=True)
class Retraction:
    """What a retraction withdraws, the version itself first, and what stays although it is built on withdrawn data."""

    withdrawn: tuple[Artifact, ...]
    standing: tuple[Artifact, ...]


@dataclass(frozen=True, slots=True)
class _Found:
    rows: list[Any]
    standing: list[Any]

    def as_retraction(self) -> Retraction:
        return Retraction(tuple(map(artifact_of, self.rows)), tuple(map(artifact_of, self.standing)))


class Retractions(StorePart):
    """Previewing and doing it."""

    def retraction(self, job_id: str, run_id: str, version: int | None = None) -> Retraction:
        """What `retract` would do, without doing it. `version` None is the current one.

        Raises `UnknownArtifactError` if there is no such version, or it was retracted already.
        """
        with self.database.read() as connection:
            return _find(connection, job_id, run_id, version).as_retraction()

    def retract(self, job_id: str, run_id: str, version: int | None, reason: str, now: datetime) -> Retraction:
        """Withdraw a version and all that was built on it, in one transaction, and have the planner decide the rest.

        Each job falls back to its newest earlier version that stands. Where there is none, the retracted job itself is
        failed with `reason`, and not started again until its inputs change or somebody reruns it; the others are
        pending. Their runs are open again, and so are those that lacked a version now restored, to fall back on. Rows
        stay readable by version. Raises `UnknownArtifactError`.
        """
        with self.database.write() as connection:
            advisory_lock(connection, RETRACTION)
            found = _find(connection, job_id, run_id, version)
            restored = _restored(connection, found.rows)
            run_ids = {row.run_id for row in found.rows} | _lacking(connection, restored.values())
            order = sa.select(runs.c.run_id).where(runs.c.run_id.in_(run_ids))
            connection.execute(order.order_by(runs.c.moment, runs.c.suffix, runs.c.run_id).with_for_update()).all()
            root, *built_on_it = found.rows
            _withdraw(connection, [root], reason, now)
            because = f"built on version {root.version} of {job_id} of run {run_id}, retracted: {reason}"
            _withdraw(connection, built_on_it, because, now)
            for row in found.rows:
                if row.artifact_id in restored:
                    _restore(connection, restored[row.artifact_id])
                elif row.is_current:
                    _end(connection, row, reason if row is root else None, now)
            touch(connection, run_ids)
            return found.as_retraction()


def _find(connection: sa.Connection, job_id: str, run_id: str, version: int | None) -> _Found:
    which = artifacts.c.is_current if version is None else artifacts.c.version == version
    query = sa.select(*ARTIFACT_COLUMNS, artifacts.c.is_current).where(artifacts.c.retracted_at.is_(None))
    same = (artifacts.c.job_id == job_id, artifacts.c.run_id == run_id)
    root = connection.execute(query.where(*same, which)).one_or_none()
    if root is None:
        what = "usable version" if version is None else f"version {version}"
        raise UnknownArtifactError(
            f"{job_id} of run {run_id} has no {what} that could be retracted. See: collect status {run_id}"
        )
    withdrawn = {root.artifact_id: root}
    standing: dict[int, sa.Row[Any]] = {}
    level: list[int] = [root.artifact_id]
    while level:
        consumers = query.add_columns(artifact_inputs.c.on_rerun).join(
            artifact_inputs, artifact_inputs.c.artifact_id == artifacts.c.artifact_id
        )
        rows = connection.execute(
            consumers.where(artifact_inputs.c.input_artifact_id.in_(level)).order_by(artifacts.c.artifact_id)
        ).all()
        standing |= {row.artifact_id: row for row in rows if row.on_rerun == "pin"}
        following = {row.artifact_id: row for row in rows if row.on_rerun != "pin"}
        level = [artifact_id for artifact_id in following if artifact_id not in withdrawn]
        withdrawn |= {artifact_id: following[artifact_id] for artifact_id in level}
    kept = [row for artifact_id, row in standing.items() if artifact_id not in withdrawn]
    return _Found(list(withdrawn.values()), kept)


def _withdraw(connection: sa.Connection, rows: Iterable[sa.Row[Any]], reason: str, now: datetime) -> None:
    ids = [row.artifact_id for row in rows]
    withdrawn = artifacts.update().where(artifacts.c.artifact_id.in_(ids))
    connection.execute(withdrawn.values(retracted_at=now, retract_reason=reason, is_current=False))


def _restored(connection: sa.Connection, going: Collection[sa.Row[Any]]) -> dict[int, Any]:
    """By the id of a current version that goes, the newest earlier one that stands; only where there is one."""
    ids = [row.artifact_id for row in going]
    restored: dict[int, Any] = {}
    for row in going:
        if row.is_current:
            query = (
                sa.select(*ARTIFACT_COLUMNS, artifacts.c.moment, artifacts.c.suffix)
                .where(artifacts.c.run_id == row.run_id, artifacts.c.job_id == row.job_id)
                .where(artifacts.c.usable, artifacts.c.retracted_at.is_(None), artifacts.c.artifact_id.not_in(ids))
                .order_by(artifacts.c.version.desc())
                .limit(1)
            )
            earlier = connection.execute(query).one_or_none()
            if earlier is not None:
                restored[row.artifact_id] = earlier
    return restored


def _lacking(connection: sa.Connection, restored: Iterable[Any]) -> set[str]:
    """The settled runs that lack such fallbacks."""
    conditions = (lacks_fallback(row.job_id, row.as_of, row.moment, row.suffix) for row in restored)
    queries = (sa.select(runs.c.run_id).where(condition) for condition in conditions)
    return {run_id for query in queries for run_id in connection.execute(query).scalars()}


def _restore(connection: sa.Connection, earlier: sa.Row[Any]) -> None:
    """Make a version current again, and its inputs the job's last attempt."""
    same = artifacts.c.artifact_id == earlier.artifact_id
    connection.execute(artifacts.update().where(same).values(is_current=True))
    changes = {"status": "done", "outcome": "done", "reason": None, "error_kind": None}
    inputs = inputs_to_json(_inputs(connection, earlier.artifact_id))
    connection.execute(_not_running(earlier).values(**changes, attempted=inputs))


def _end(connection: sa.Connection, row: sa.Row[Any], reason: str | None, now: datetime) -> None:
    """Leave the job without an artifact: failed for a reason given, else pending as if it had never run."""
    if reason is None:
        changes: dict[str, Any] = {"status": "pending", "outcome": "pending", "reason": None, "attempted": None}
    else:
        changes = {"status": "failed", "outcome": "failed", "reason": f"version {row.version} was retracted: {reason}"}
    kind = None if reason is None else "retracted"
    connection.execute(_not_running(row).values(**changes, error_kind=kind, finished_at=now))


def _not_running(row: sa.Row[Any]) -> sa.Update:
    # A running attempt is left to end by itself; if it consumed what was withdrawn, it will not be published.
    return jobs.update().where(jobs.c.run_id == row.run_id, jobs.c.job_id == row.job_id, jobs.c.outcome != "running")


def _inputs(connection: sa.Connection, artifact_id: int) -> dict[str, Artifact | None]:
    query = (
        sa.select(artifact_inputs.c.upstream, *ARTIFACT_COLUMNS)
        .outerjoin(artifacts, artifacts.c.artifact_id == artifact_inputs.c.input_artifact_id)
        .where(artifact_inputs.c.artifact_id == artifact_id)
    )
    rows = connection.execute(query)
    return {row.upstream: None if row.version is None else artifact_of(row) for row in rows}
