"""Write, audit, publish: rows, manifest, consumed inputs and job status in one transaction.

The order inside it: rows; audit on the staged rows; files of the version, if it has any; then the locks (runs in their
order, then the job), the manifest, the job's row. The locks come last so that nobody waits while rows are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from collection_pipeline.engine.datasets import Dataset
from collection_pipeline.engine.planner import Artifact
from collection_pipeline.engine.store.attempts import Attempt, check_held, lost_claim
from collection_pipeline.engine.store.part import StorePart
from collection_pipeline.engine.store.runs import touch
from collection_pipeline.engine.store.schema import artifact_inputs, artifacts, jobs, runs, unmet_fallbacks
from collection_pipeline.engine.store.staging import CheckOutcome, Staged
from collection_pipeline.engine.store.tables import ensure_tables

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from collection_pipeline.engine.store.frames import ContentHash

Audit = Callable[[Staged], Sequence[CheckOutcome]]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is kept of an artifact beside its rows. `metadata` and `files` are JSON; credits are API credits."""

    source: str | None = None
    credits_charged: int = 0
    credits_reused: int = 0
    metadata: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Published:
    """The artifact as it was stored. Not `usable`: a blocking check failed, and the job with it."""

    artifact: Artifact
    usable: bool
    row_count: int
    checks: tuple[CheckOutcome, ...]
    files: Mapping[str, Any]
    reopened_runs: tuple[str, ...] = ()
    """Later runs, settled before, that may have waited for just this as a fallback."""


class Publishing(StorePart):
    """The one way in which artifacts come to be."""

    def publish(
        self,
        attempt: Attempt,
        dataset: Dataset,
        frames: Iterable[pd.DataFrame],
        audit: Audit,
        *,
        manifest: Manifest,
        now: datetime,
        on_version: Callable[[int], Mapping[str, Any]] | None = None,
    ) -> Published:
        """Store the frames, which are taken one by one, as the next version, and end the attempt.

        `audit` judges the staged rows; if a blocking check fails, the artifact is stored unusable and the job is
        failed, otherwise it is done. `on_version` is told the version before anything is visible and returns the entry
        for `files`. Whatever raises before the end (`FrameError`, the frames, the audit, `on_version`) leaves the store
        as it was and the attempt running; `LostClaimError` means that it does not hold the job any more.
        """
        ensure_tables(self._database, dataset)
        stream = iter(frames)
        # The first frame is made before the write lock is taken: small artifacts hold it for milliseconds only.
        first = [frame for frame in [next(stream, None)] if frame is not None]
        with self._database.write() as connection:
            check_held(connection, attempt)
            version = _next_version(connection, attempt)
            staged = _stage(connection, dataset, attempt, version, chain(first, stream))
            checks = tuple(audit(staged))
            files = on_version(version) if on_version is not None else manifest.files
            failed = [check for check in checks if check.blocking and not check.passed]
            artifact = Artifact(
                attempt.job_id,
                attempt.run_id,
                version,
                min([attempt.moment, *(each.as_of for each in attempt.inputs.values() if each is not None)]),
                staged.content_hash,
                _is_degraded(attempt),
            )
            reopened = _lock_runs(connection, attempt, artifact, usable=not failed)
            check_held(connection, attempt)
            _insert_artifact(connection, attempt, artifact, staged, checks, manifest, files, now, usable=not failed)
            _end_attempt(connection, attempt, failed, now)
            touch(connection, [attempt.run_id, *reopened])
        return Published(artifact, not failed, staged.row_count, checks, files, reopened)


def _next_version(connection: sa.Connection, attempt: Attempt) -> int:
    newest = sa.select(sa.func.max(artifacts.c.version)).where(
        artifacts.c.run_id == attempt.run_id, artifacts.c.job_id == attempt.job_id
    )
    return (connection.execute(newest).scalar() or 0) + 1


def _stage(
    connection: sa.Connection, dataset: Dataset, attempt: Attempt, version: int, frames: Iterable[pd.DataFrame]
) -> Staged:
    # Heavy imports, wanted only where frames are.
    from collection_pipeline.engine.store.bulk import write_rows
    from collection_pipeline.engine.store.frames import ContentHash, to_arrow

    content = ContentHash(dataset)

    def hashed(content: ContentHash) -> Iterable[pa.RecordBatch]:
        for frame in frames:
            batch = to_arrow(frame, dataset)
            content.update(batch)
            yield batch

    try:
        count = write_rows(connection, dataset, attempt.run_id, version, hashed(content))
    except sa.exc.IntegrityError as error:
        # Somebody else published this version meanwhile, which only whoever took the job over can have done.
        raise lost_claim(attempt) from error
    return Staged(connection, dataset, attempt.run_id, version, count, content.hexdigest())


def _is_degraded(attempt: Attempt) -> bool:
    used = [artifact for artifact in attempt.inputs.values() if artifact is not None]
    return any(each.degraded or each.run_id != attempt.run_id or each.as_of < attempt.moment for each in used)


def _lock_runs(connection: sa.Connection, attempt: Attempt, artifact: Artifact, *, usable: bool) -> tuple[str, ...]:
    """Lock this run, and the settled later ones that lack an artifact for want of such a fallback; returns those."""
    later = (unmet_fallbacks.c.moment > attempt.moment) | (
        (unmet_fallbacks.c.moment == attempt.moment) & (unmet_fallbacks.c.suffix > attempt.suffix)
    )
    waiting = sa.select(unmet_fallbacks.c.run_id).where(
        unmet_fallbacks.c.upstream == artifact.job_id, unmet_fallbacks.c.oldest_as_of <= artifact.as_of, later
    )
    own = runs.c.run_id == attempt.run_id
    chosen = own | (runs.c.settled_at.is_not(None) & runs.c.run_id.in_(waiting)) if usable else own
    query = sa.select(runs.c.run_id).where(chosen).order_by(runs.c.moment, runs.c.suffix, runs.c.run_id)
    found = connection.execute(query.with_for_update()).scalars()
    return tuple(run_id for run_id in found if run_id != attempt.run_id)


def _insert_artifact(
    connection: sa.Connection,
    attempt: Attempt,
    artifact: Artifact,
    staged: Staged,
    checks: Sequence[CheckOutcome],
    manifest: Manifest,
    files: Mapping[str, Any],
    now: datetime,
    *,
    usable: bool,
) -> None:
    same = (artifacts.c.run_id == attempt.run_id) & (artifacts.c.job_id == attempt.job_id)
    if usable:
        connection.execute(artifacts.update().where(same, artifacts.c.is_current).values(is_current=False))
    inserted = connection.execute(
        artifacts.insert().values(
            run_id=attempt.run_id,
            job_id=attempt.job_id,
            version=artifact.version,
            usable=usable,
            is_current=usable,
            as_of=artifact.as_of,
            degraded=artifact.degraded,
            row_count=staged.row_count,
            content_hash=artifact.content_hash,
            dataset=staged.dataset.name,
            source=manifest.source,
            published_at=now,
            attempt=attempt.number,
            dagster_run_id=attempt.holder.dagster_run_id,
            generation=attempt.generation,
            oldest_generation=attempt.oldest_generation,
            credits_charged=manifest.credits_charged,
            credits_reused=manifest.credits_reused,
            checks=[check.to_json() for check in checks],
            metadata=dict(manifest.metadata),
            files=dict(files),
            moment=attempt.moment,
            suffix=attempt.suffix,
        )
    )
    assert inserted.inserted_primary_key is not None
    _insert_inputs(connection, inserted.inserted_primary_key[0], attempt)


def _insert_inputs(connection: sa.Connection, artifact_id: int, attempt: Attempt) -> None:
    consumed = {
        (each.run_id, each.job_id, each.version): upstream
        for upstream, each in attempt.inputs.items()
        if each is not None
    }
    key = sa.tuple_(artifacts.c.run_id, artifacts.c.job_id, artifacts.c.version)
    found = sa.select(artifacts).where(key.in_(list(consumed))) if consumed else None
    ids = {
        consumed[row.run_id, row.job_id, row.version]: row.artifact_id
        for row in (connection.execute(found) if found is not None else ())
    }
    rows = [
        {
            "artifact_id": artifact_id,
            "upstream": edge.upstream,
            "input_artifact_id": ids.get(edge.upstream),
            "policy": edge.policy,
            "on_rerun": edge.on_rerun,
        }
        for edge in attempt.job.edges
    ]
    if rows:
        connection.execute(artifact_inputs.insert(), rows)


def _end_attempt(connection: sa.Connection, attempt: Attempt, failed: Sequence[CheckOutcome], now: datetime) -> None:
    outcome = "failed" if failed else "done"
    reason = "; ".join(f"check {check.name} failed: {check.description}" for check in failed)
    connection.execute(
        jobs.update()
        .where(jobs.c.run_id == attempt.run_id, jobs.c.job_id == attempt.job_id)
        .values(
            status=outcome,
            outcome=outcome,
            finished_at=now,
            reason=reason or None,
            error_kind="check" if failed else None,
            # What is published is not reused: the next attempt asks anew.
            generation=attempt.generation + 1,
            oldest_generation=attempt.generation + 1,
            credits_reserved=0,
        )
    )
