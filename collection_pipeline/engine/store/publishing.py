"""Write, audit, publish: rows, manifest, consumed inputs and job status in one transaction.

The order inside it: rows; audit on the staged rows; files of the version, if it has any; then the locks (runs in their
order, then the job), the manifest, the job's row. The locks come last, so that on PostgreSQL nobody waits while rows
are written. SQLite has one writer at a time: there everybody else who writes waits from the first frame on, while the
further ones are made and the files are written, until the end. Work that takes long between many frames, and files that
go to a slow bucket, belong on PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from collection_pipeline.engine.datasets import Dataset
from collection_pipeline.engine.planning.state import Artifact
from collection_pipeline.engine.store.attempts import Attempt, check_held, lost_claim
from collection_pipeline.engine.store.database import RETRACTION, advisory_lock
from collection_pipeline.engine.store.errors import RetractedInputError
from collection_pipeline.engine.store.part import StorePart
from collection_pipeline.engine.store.runs import touch
from collection_pipeline.engine.store.schema import artifact_inputs, artifacts, jobs, runs
from collection_pipeline.engine.store.staging import Staged
from collection_pipeline.engine.store.states import lacks_fallback
from collection_pipeline.engine.store.tables import ensure_tables
from collection_pipeline.engine.words.outcomes import rejection_reason

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from collection_pipeline.engine.checks import CheckOutcome
    from collection_pipeline.engine.store.frames import ContentHash

Audit = Callable[[Staged], "Sequence[CheckOutcome]"]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is kept of an artifact beside its rows. `metadata` and `files` (one entry a file) are JSON."""

    source: str | None = None
    credits_charged: int = 0
    credits_reused: int = 0
    metadata: Mapping[str, Any] = field(default_factory=dict)
    files: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Published:
    """The artifact as it was stored. Not `usable`: a blocking check failed, and the job with it."""

    artifact: Artifact
    usable: bool
    row_count: int
    checks: tuple[CheckOutcome, ...]
    manifest: Manifest


class Publishing(StorePart):
    """The one way in which artifacts come to be."""

    def prepare(self, dataset: Dataset) -> None:
        """See to it that artifacts of the data set can be stored, before anything is paid for them.

        Raises `DatasetError`.
        """
        ensure_tables(self.database, dataset)

    def publish(
        self,
        attempt: Attempt,
        dataset: Dataset,
        frames: Iterable[pd.DataFrame],
        audit: Audit,
        *,
        manifest: Callable[[int], Manifest],
        now: Callable[[], datetime],
    ) -> Published:
        """Store the frames, which are taken one by one, as the next version, and end the attempt.

        `audit` judges the staged rows; if it rejects them, the artifact is stored unusable and the job is failed,
        otherwise it is done. `manifest` is then told the version, and may write its files before anything is visible.
        `now`, the instant of publication, is asked for last, for all of this takes as long as the frames take to make.
        Whatever raises before the end (`FrameError`, the frames, the audit, the manifest) leaves the store as it was
        and the attempt running. `LostClaimError`: it does not hold the job any more. `RetractedInputError`: what it
        consumed was withdrawn meanwhile.
        """
        ensure_tables(self.database, dataset)
        stream = iter(frames)
        # The first frame is made before the write lock is taken: small artifacts hold it for milliseconds only.
        first = [frame for frame in [next(stream, None)] if frame is not None]
        with self.database.write() as connection:
            check_held(connection, attempt)
            version = _next_version(connection, attempt)
            staged = _stage(connection, dataset, attempt, version, chain(first, stream))
            checks = tuple(audit(staged))
            entry = manifest(version)
            usable = not any(check.rejects for check in checks)
            artifact = Artifact(
                attempt.job_id,
                attempt.run_id,
                version,
                attempt.as_of,
                staged.content_hash,
                attempt.degraded,
            )
            # From here on only short statements: a retraction waits for them, or they for it; and so does a run that
            # settles without a fallback.
            advisory_lock(connection, RETRACTION, shared=True)
            input_ids = _input_ids(connection, attempt)
            reopened = _lock_runs(connection, attempt, artifact, usable=usable)
            check_held(connection, attempt)
            published = Published(artifact, usable, staged.row_count, checks, entry)
            published_at = now()
            _insert_artifact(connection, attempt, dataset, published, input_ids, published_at=published_at)
            _end_attempt(connection, attempt, checks, published_at)
            touch(connection, [attempt.run_id, *reopened])
        return published


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


def _lock_runs(connection: sa.Connection, attempt: Attempt, artifact: Artifact, *, usable: bool) -> tuple[str, ...]:
    """Lock this run, and the settled later ones that lack an artifact for want of such a fallback; returns those."""
    own = runs.c.run_id == attempt.run_id
    lacking = lacks_fallback(artifact.job_id, artifact.as_of, attempt.moment, attempt.suffix)
    chosen = own | lacking if usable else own
    query = sa.select(runs.c.run_id).where(chosen).order_by(runs.c.moment, runs.c.suffix, runs.c.run_id)
    found = connection.execute(query.with_for_update()).scalars()
    return tuple(run_id for run_id in found if run_id != attempt.run_id)


def _input_ids(connection: sa.Connection, attempt: Attempt) -> dict[str, int]:
    """The artifact_id of each consumed input, by upstream. Raises `RetractedInputError` if one was withdrawn."""
    consumed = {upstream: each for upstream, each in attempt.inputs.items() if each is not None}
    key = sa.tuple_(artifacts.c.run_id, artifacts.c.job_id, artifacts.c.version)
    wanted = [(each.run_id, each.job_id, each.version) for each in consumed.values()]
    columns = (artifacts.c.artifact_id, artifacts.c.run_id, artifacts.c.job_id, artifacts.c.version)
    standing = sa.select(*columns).where(key.in_(wanted), artifacts.c.retracted_at.is_(None))
    ids = {(row.run_id, row.job_id, row.version): row.artifact_id for row in connection.execute(standing)}
    for each in consumed.values():
        if (each.run_id, each.job_id, each.version) not in ids:
            raise RetractedInputError(
                f"{attempt.job_id} of run {attempt.run_id} consumed version {each.version} of {each.job_id} of run"
                f" {each.run_id}, which was retracted or pruned meanwhile. Nothing was published; the job runs again as"
                " soon as it has other inputs."
            )
    return {upstream: ids[each.run_id, each.job_id, each.version] for upstream, each in consumed.items()}


def _insert_artifact(
    connection: sa.Connection,
    attempt: Attempt,
    dataset: Dataset,
    published: Published,
    input_ids: Mapping[str, int],
    *,
    published_at: datetime,
) -> None:
    artifact, manifest = published.artifact, published.manifest
    if published.usable:
        before = (artifacts.c.run_id == attempt.run_id) & (artifacts.c.job_id == attempt.job_id)
        connection.execute(artifacts.update().where(before, artifacts.c.is_current).values(is_current=False))
    insert = artifacts.insert().values(
        run_id=artifact.run_id,
        job_id=artifact.job_id,
        version=artifact.version,
        usable=published.usable,
        is_current=published.usable,
        as_of=artifact.as_of,
        degraded=artifact.degraded,
        row_count=published.row_count,
        content_hash=artifact.content_hash,
        dataset=dataset.name,
        source=manifest.source,
        published_at=published_at,
        attempt=attempt.number,
        dagster_run_id=attempt.holder.dagster_run_id,
        generation=attempt.generation,
        oldest_generation=attempt.oldest_generation,
        credits_charged=manifest.credits_charged,
        credits_reused=manifest.credits_reused,
        checks=[check.to_json() for check in published.checks],
        metadata=dict(manifest.metadata),
        files=[dict(file) for file in manifest.files],
        moment=attempt.moment,
        suffix=attempt.suffix,
    )
    artifact_id = connection.execute(insert.returning(artifacts.c.artifact_id)).scalar_one()
    rows = [
        {
            "artifact_id": artifact_id,
            "upstream": edge.upstream,
            "input_artifact_id": input_ids.get(edge.upstream),
            "policy": edge.policy,
            "on_rerun": edge.on_rerun,
        }
        for edge in attempt.job.edges
    ]
    if rows:
        connection.execute(artifact_inputs.insert(), rows)


def _end_attempt(
    connection: sa.Connection, attempt: Attempt, checks: Sequence[CheckOutcome], finished_at: datetime
) -> None:
    reason = rejection_reason(checks)
    outcome = "failed" if reason else "done"
    connection.execute(
        jobs.update()
        .where(jobs.c.run_id == attempt.run_id, jobs.c.job_id == attempt.job_id)
        .values(
            status=outcome,
            outcome=outcome,
            finished_at=finished_at,
            reason=reason or None,
            error_kind="check" if reason else None,
            # What is published is not reused: the next attempt asks anew.
            generation=attempt.generation + 1,
            oldest_generation=attempt.generation + 1,
            credits_reserved=0,
        )
    )
