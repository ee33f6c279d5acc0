"""The physical table and the view of a data set, made from its description and kept in step with it.

Table `<dataset>_rows` holds every version of every run; view `<dataset>` shows the rows of the current ones.
Identifiers come only from names that match `NAME`, and are quoted all the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.sql import quoted_name

from collection_pipeline.engine.datasets import Dataset, Kind
from collection_pipeline.engine.store.database import DATASETS, Database, advisory_lock
from collection_pipeline.engine.store.errors import DatasetError
from collection_pipeline.engine.store.schema import artifacts, datasets, metadata

NAME = re.compile(r"[a-z][a-z0-9_]{0,47}", re.ASCII)
KEYS = ("run_id", "version", "row_no")

_SQLITE: Mapping[Kind, str] = {
    "text": "TEXT",
    "integer": "INTEGER",
    "number": "REAL",
    "boolean": "BOOLEAN",
    "instant": "TEXT",
    "json": "TEXT",
}
_POSTGRESQL: Mapping[Kind, str] = {
    "text": "text",
    "integer": "bigint",
    "number": "double precision",
    "boolean": "boolean",
    "instant": "timestamptz",
    # json, not jsonb: the text stays as it was written.
    "json": "json",
}


@cache
def rows_of(dataset: Dataset) -> sa.TableClause:
    """The physical table, for statements; always the same object, so that parts of a statement fit together."""
    names = (*KEYS, *(column.name for column in dataset.columns))
    return sa.table(_quoted(f"{dataset.name}_rows"), *(sa.column(_quoted(name)) for name in names))


def of_version(rows: sa.TableClause, run_id: str, version: int) -> sa.ColumnElement[bool]:
    """The rows of one version."""
    return (rows.c.run_id == run_id) & (rows.c.version == version)


def _quoted(name: str) -> quoted_name:
    return quoted_name(name, quote=True)


def ensure_tables(database: Database, dataset: Dataset) -> None:
    """Make the table and view of the data set, or bring them up to its description; only then is anything locked.

    A new column is added, NULL in older rows; one no longer described leaves the view and stays in the table. Raises
    `DatasetError` for names that cannot be columns and for a column that changed its kind.
    """
    if database.known_datasets.get(dataset.name) == dataset.columns:
        return
    _check_names(dataset)
    described: dict[str, Kind] = {column.name: column.kind for column in dataset.columns}
    with database.read() as connection:
        shown = _stored(connection, dataset).shown
    if list(shown.items()) != list(described.items()):
        with database.write() as connection:
            advisory_lock(connection, DATASETS)
            _describe(connection, dataset, described)
    database.known_datasets[dataset.name] = dataset.columns


class _Stored(NamedTuple):
    """The kinds of all columns of the table, and of those that the view shows, in its order."""

    kinds: dict[str, Kind]
    shown: dict[str, Kind]


def _stored(connection: sa.Connection, dataset: Dataset) -> _Stored:
    row = connection.execute(sa.select(datasets).where(datasets.c.dataset == dataset.name)).one_or_none()
    return _Stored({}, {}) if row is None else _Stored(row.kinds, {name: row.kinds[name] for name in row.shown})


def _describe(connection: sa.Connection, dataset: Dataset, described: dict[str, Kind]) -> None:
    kinds, shown = _stored(connection, dataset)
    _check_kinds(dataset, kinds)
    if not kinds:
        _create_table(connection, dataset, described)
        connection.execute(datasets.insert().values(dataset=dataset.name, kinds={}, shown=[]))
    elif list(shown.items()) != list(described.items()):
        for name in described.keys() - kinds.keys():
            _add_column(connection, dataset, name, described[name])
        connection.exec_driver_sql(f'DROP VIEW "{dataset.name}"')
    else:
        return
    _create_view(connection, dataset)
    row = datasets.update().where(datasets.c.dataset == dataset.name)
    connection.execute(row.values(kinds={**kinds, **described}, shown=list(described)))


def _check_names(dataset: Dataset) -> None:
    taken = {*metadata.tables, *(f"{name}_rows" for name in metadata.tables)}
    if not NAME.fullmatch(dataset.name) or dataset.name in taken:
        raise DatasetError(f"A data set cannot be called {dataset.name!r}: {_RULE}, no name of the store's own tables.")
    names = [column.name for column in dataset.columns]
    for name in names:
        if not NAME.fullmatch(name) or name in KEYS or names.count(name) > 1:
            raise DatasetError(
                f"Data set {dataset.name} cannot have a column called {name!r}: {_RULE}, once only, and not one of"
                f" {', '.join(KEYS)}."
            )


_RULE = "lower case letters, digits and _, starting with a letter, at most 48 characters"


def _check_kinds(dataset: Dataset, stored: Mapping[str, Kind]) -> None:
    for column in dataset.columns:
        before = stored.get(column.name, column.kind)
        if before != column.kind:
            raise DatasetError(
                f"Column {column.name} of data set {dataset.name} is stored as {before} and now described as"
                f" {column.kind}. Rows already stored keep their kind: describe it as {before}, or give the new column"
                " another name."
            )


def _type_of(connection: sa.Connection, kind: Kind) -> str:
    return (_SQLITE if connection.dialect.name == "sqlite" else _POSTGRESQL)[kind]


def _create_table(connection: sa.Connection, dataset: Dataset, described: Mapping[str, Kind]) -> None:
    columns = "".join(f', "{name}" {_type_of(connection, kind)}' for name, kind in described.items())
    connection.exec_driver_sql(
        f'CREATE TABLE "{dataset.name}_rows" (run_id text NOT NULL, version integer NOT NULL, row_no integer NOT NULL'
        f"{columns}, PRIMARY KEY (run_id, version, row_no))"
    )


def _add_column(connection: sa.Connection, dataset: Dataset, name: str, kind: Kind) -> None:
    connection.exec_driver_sql(f'ALTER TABLE "{dataset.name}_rows" ADD COLUMN "{name}" {_type_of(connection, kind)}')


def _create_view(connection: sa.Connection, dataset: Dataset) -> None:
    rows = rows_of(dataset)
    current = (
        (artifacts.c.dataset == dataset.name)
        & (artifacts.c.run_id == rows.c.run_id)
        & (artifacts.c.version == rows.c.version)
        & artifacts.c.is_current
    )
    shown = [column for column in rows.c if column.name != "row_no"]
    select = sa.select(*shown).join_from(rows, artifacts, current)
    # A view's text takes no parameters; the only value in it is a checked name.
    text = select.compile(connection, compile_kwargs={"literal_binds": True})
    connection.exec_driver_sql(f'CREATE VIEW "{dataset.name}" AS {text}')
