"""What an audit sees of rows that are written but not yet published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from collection_pipeline.engine.datasets import Dataset
from collection_pipeline.engine.store.tables import of_version, rows_of


@dataclass(frozen=True, slots=True)
class Staged:
    """The rows of a version to be, inside the transaction that wrote them. Questions are answered by the database."""

    _connection: sa.Connection
    dataset: Dataset
    run_id: str
    version: int
    row_count: int
    content_hash: str

    def duplicates(self, columns: Sequence[str] | None = None) -> int:
        """How many rows repeat an earlier row in `columns` (the key by default). Missing values are equal."""
        names = self.dataset.key if columns is None else columns
        if not names:
            return 0
        groups = self._select((sa.func.count() - 1).label("again")).group_by(*(self._rows.c[name] for name in names))
        repeated = groups.having(sa.func.count() > 1).subquery()
        return int(self._connection.execute(sa.select(sa.func.coalesce(sa.func.sum(repeated.c.again), 0))).scalar_one())

    def nulls(self) -> dict[str, int]:
        """How many values are missing, by column."""
        names = [column.name for column in self.dataset.columns]
        counts = self._select(*(sa.func.count() - sa.func.count(self._rows.c[name]) for name in names))
        return dict(zip(names, map(int, self._connection.execute(counts).one()), strict=True))

    @property
    def _rows(self) -> sa.TableClause:
        return rows_of(self.dataset)

    def _select(self, *columns: sa.ColumnElement[Any]) -> sa.Select[tuple[Any, ...]]:
        rows = self._rows
        return sa.select(*columns).select_from(rows).where(of_version(rows, self.run_id, self.version))
