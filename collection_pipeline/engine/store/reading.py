"""Artifacts back as data frames, with exact types, whole or in chunks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from collection_pipeline.engine.datasets import Column, Dataset
from collection_pipeline.engine.planning.graph import nearest
from collection_pipeline.engine.planning.state import Artifact
from collection_pipeline.engine.store.errors import FrameError, UnknownArtifactError
from collection_pipeline.engine.store.part import StorePart
from collection_pipeline.engine.store.references import ARTIFACT_COLUMNS, artifact_of
from collection_pipeline.engine.store.runs import unknown_run
from collection_pipeline.engine.store.schema import artifacts, runs
from collection_pipeline.engine.store.states import earlier
from collection_pipeline.engine.store.tables import ensure_tables

if TYPE_CHECKING:
    import pandas as pd


class Reading(StorePart):
    """Reading rows, and finding the artifacts of earlier runs to compare with."""

    def read(self, dataset: Dataset, artifact: Artifact, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """All rows of one version, in the order they were published, with the types that `engine.datasets` promises.

        `columns` limits and orders the columns. Versions stay readable when newer ones or a retraction come; one that
        was pruned, or never was, raises `UnknownArtifactError`, an unknown column `FrameError`.
        """
        from collection_pipeline.engine.store.bulk_read import read_all

        chosen = self._check(dataset, artifact, columns)
        return read_all(self.database, dataset, artifact, chosen)

    def read_chunks(
        self, dataset: Dataset, artifact: Artifact, columns: Sequence[str] | None = None, rows: int = 5000
    ) -> Iterator[pd.DataFrame]:
        """The same in frames of at most `rows` rows, in flat memory, with no transaction open between them."""
        from collection_pipeline.engine.store.bulk_read import read_in_chunks

        chosen = self._check(dataset, artifact, columns)
        yield from read_in_chunks(self.database, dataset, artifact, chosen, rows)

    def previous_artifact(self, job_id: str, run_id: str) -> Artifact | None:
        """The current artifact of the nearest earlier run that has one: what "changed since" compares with."""
        found = self._earlier(job_id, run_id, ARTIFACT_COLUMNS, 1)
        return artifact_of(found[0]) if found else None

    def recent_row_counts(self, job_id: str, run_id: str, n: int) -> list[int]:
        """The row counts of the current artifacts of the last `n` runs before this one, newest first."""
        return [row.row_count for row in self._earlier(job_id, run_id, (artifacts.c.row_count,), n)]

    def earlier_cost(self, job_id: str, run_id: str) -> int | None:
        """What all answers of the job cost in the nearest earlier run that has it, in API credits; None without one."""
        columns = ((artifacts.c.credits_charged + artifacts.c.credits_reused).label("cost"),)
        found = self._earlier(job_id, run_id, columns, 1)
        return int(found[0].cost) if found else None

    def _earlier(
        self, job_id: str, run_id: str, columns: Sequence[sa.ColumnElement[Any]], n: int
    ) -> Sequence[sa.Row[Any]]:
        with self.database.read() as connection:
            order = sa.select(runs.c.moment, runs.c.suffix).where(runs.c.run_id == run_id)
            run = connection.execute(order).one_or_none()
            if run is None:
                raise unknown_run(run_id)
            query = (
                sa.select(*columns)
                .where(artifacts.c.job_id == job_id, artifacts.c.is_current, earlier(run.moment, run.suffix))
                .order_by(artifacts.c.moment.desc(), artifacts.c.suffix.desc())
                .limit(n)
            )
            return connection.execute(query).all()

    def _check(self, dataset: Dataset, artifact: Artifact, columns: Sequence[str] | None) -> list[Column]:
        ensure_tables(self.database, dataset)
        same = (
            artifacts.c.run_id == artifact.run_id,
            artifacts.c.job_id == artifact.job_id,
            artifacts.c.version == artifact.version,
            artifacts.c.dataset == dataset.name,
        )
        with self.database.read() as connection:
            if not connection.execute(sa.select(sa.exists().where(*same))).scalar_one():
                raise UnknownArtifactError(
                    f"There is no version {artifact.version} of {artifact.job_id} in run {artifact.run_id}: it was"
                    f" pruned, or never published. See: collect status {artifact.run_id}"
                )
        known = {column.name: column for column in dataset.columns}
        for name in columns or ():
            if name not in known:
                raise FrameError(f"{dataset.name} has no column {name!r}. {nearest(name, known)}")
        return list(dataset.columns) if columns is None else [known[name] for name in columns]
