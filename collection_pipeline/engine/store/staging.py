"""What an audit sees of rows that are written but not yet published, and what it says about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from collection_pipeline.engine.datasets import Dataset
from collection_pipeline.engine.store.tables import quoted, rows_table


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """The verdict of one check. A failed `blocking` check makes the artifact unusable; others are notes."""

    name: str
    passed: bool
    blocking: bool
    description: str
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The outcome for the manifest."""
        return {
            "name": self.name,
            "passed": self.passed,
            "blocking": self.blocking,
            "description": self.description,
            "metadata": dict(self.metadata),
        }

    @classmethod
    def from_json(cls, item: Mapping[str, Any]) -> CheckOutcome:
        """What `to_json` wrote."""
        return cls(**item)


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
        """How many rows repeat the values of `columns` (the key by default) of an earlier row. Missing ones are equal."""
        names = self.dataset.key if columns is None else tuple(columns)
        if not names:
            return 0
        groups = f"SELECT count(*) - 1 AS again {self._rows} GROUP BY {quoted(self._known(names))} HAVING count(*) > 1"
        return int(self._one(f"SELECT coalesce(sum(again), 0) FROM ({groups}) AS repeated")[0])

    def nulls(self) -> dict[str, int]:
        """How many values are missing, by column."""
        names = [column.name for column in self.dataset.columns]
        counts = ", ".join(f'count(*) - count("{name}")' for name in names)
        return dict(zip(names, map(int, self._one(f"SELECT {counts} {self._rows}")), strict=True))

    def distinct(self, column: str) -> int:
        """How many different present values a column has."""
        return int(self._one(f"SELECT count(DISTINCT {quoted(self._known([column]))}) {self._rows}")[0])

    @property
    def _rows(self) -> str:
        return f'FROM "{rows_table(self.dataset)}" WHERE run_id = :run_id AND version = :version'

    def _known(self, names: Sequence[str]) -> Sequence[str]:
        known = {column.name for column in self.dataset.columns}
        if unknown := [name for name in names if name not in known]:
            raise KeyError(f"{self.dataset.name} has no column {', '.join(unknown)}")
        return names

    def _one(self, statement: str) -> Sequence[Any]:
        values = {"run_id": self.run_id, "version": self.version}
        return tuple(self._connection.execute(sa.text(statement), values).one())
