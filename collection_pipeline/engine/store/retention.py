"""Pruning: old settled runs go, with rows, ledger and manifests; never what a kept artifact consumed.

One run is one transaction, and consumers go before what they consumed, so a kill in the middle leaves whole runs. The
same transaction notes the files to remove; until that is confirmed, the next pruning hands them out again. So a
manifest never points at missing files, and no file is forgotten.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from collection_pipeline.engine.store.database import RETRACTION, advisory_lock
from collection_pipeline.engine.store.part import StorePart
from collection_pipeline.engine.store.schema import (
    artifact_inputs,
    artifacts,
    datasets,
    jobs,
    removals,
    requests,
    runs,
    unmet_fallbacks,
)


@dataclass(frozen=True, slots=True)
class Removal:
    """A run whose rows are gone, and what is left to remove: its files, as in the manifests, and its partition."""

    run_id: str
    files: tuple[Mapping[str, Any], ...]


class Retention(StorePart):
    """Which runs may go, and letting them go."""

    def prunable(self, *, keep_days: int, keep_runs: int, now: datetime) -> list[str]:
        """The settled runs older than `keep_days` (by their moment) and not among the newest `keep_runs`, oldest first.

        A run whose artifacts a kept run consumed is kept, and so on upwards.
        """
        with self.database.read() as connection:
            every = connection.execute(sa.select(runs).order_by(runs.c.moment, runs.c.suffix, runs.c.run_id)).all()
            consumed_by = _consumed_by(connection)
        oldest_kept = now - timedelta(days=keep_days)
        candidates = [
            run.run_id
            for run in every[: max(len(every) - keep_runs, 0)]
            if run.settled_at is not None and run.moment < oldest_kept
        ]
        # Runs consume only earlier ones, so whether a run may go is known once the newer ones are judged.
        going: set[str] = set()
        for run_id in reversed(candidates):
            if consumed_by.get(run_id, set()) <= going:
                going.add(run_id)
        return [run_id for run_id in candidates if run_id in going]

    def prune(self, *, keep_days: int, keep_runs: int, now: datetime) -> Generator[Removal, None, None]:
        """Prune, run by run, yielding what is left to remove of each; first of all what an earlier pruning left.

        Whoever iterates removes files and partition, then calls `confirm_removal`.
        """
        with self.database.read() as connection:
            left = connection.execute(sa.select(removals).order_by(removals.c.pruned_at, removals.c.run_id)).all()
        for row in left:
            yield Removal(row.run_id, tuple(row.files))
        for run_id in reversed(self.prunable(keep_days=keep_days, keep_runs=keep_runs, now=now)):
            removal = self._prune_run(run_id, now)
            if removal is not None:
                yield removal

    def confirm_removal(self, run_id: str) -> None:
        """Note that the files and the partition of a pruned run are gone."""
        with self.database.write() as connection:
            connection.execute(removals.delete().where(removals.c.run_id == run_id))

    def _prune_run(self, run_id: str, now: datetime) -> Removal | None:
        with self.database.write() as connection:
            advisory_lock(connection, RETRACTION)
            settled = sa.select(runs.c.settled_at).where(runs.c.run_id == run_id).with_for_update()
            own = sa.select(artifacts.c.artifact_id).where(artifacts.c.run_id == run_id)
            inputs = artifact_inputs.c
            is_consumed = sa.exists().where(inputs.input_artifact_id.in_(own), inputs.artifact_id.not_in(own))
            # Reopened or consumed since it was chosen: it stays.
            if connection.execute(settled).scalar() is None or connection.execute(sa.select(is_consumed)).scalar_one():
                return None
            manifests = connection.execute(sa.select(artifacts.c.files).where(artifacts.c.run_id == run_id)).scalars()
            files = [file for each in manifests for file in each]
            connection.execute(removals.insert().values(run_id=run_id, files=files, pruned_at=now))
            for dataset in connection.execute(sa.select(datasets.c.dataset)).scalars().all():
                rows = sa.table(f"{dataset}_rows", sa.column("run_id"))
                connection.execute(rows.delete().where(rows.c.run_id == run_id))
            connection.execute(artifact_inputs.delete().where(inputs.artifact_id.in_(own)))
            for table in (artifacts, requests, unmet_fallbacks, jobs, runs):
                connection.execute(table.delete().where(table.c.run_id == run_id))
            return Removal(run_id, tuple(files))


def _consumed_by(connection: sa.Connection) -> dict[str, set[str]]:
    """Which other runs consumed artifacts of a run; only runs consumed by others are in it."""
    consumer, consumed = artifacts.alias(), artifacts.alias()
    query = (
        sa.select(consumed.c.run_id.label("run_id"), consumer.c.run_id.label("by"))
        .join_from(artifact_inputs, consumer, consumer.c.artifact_id == artifact_inputs.c.artifact_id)
        .join(consumed, consumed.c.artifact_id == artifact_inputs.c.input_artifact_id)
        .where(consumed.c.run_id != consumer.c.run_id)
        .distinct()
    )
    found: dict[str, set[str]] = {}
    for row in connection.execute(query):
        found.setdefault(row.run_id, set()).add(row.by)
    return found
