"""Rows of one version as Arrow tables and then frames.

Over ADBC, which hands over whole columns; on SQLite only while no other connection of this process is open to the file
(`sqlite_file`), otherwise page by page over the connection there is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa
import sqlalchemy as sa
from psycopg.sql import SQL, Identifier

from collection_pipeline.engine.datasets import Column, Dataset, Kind
from collection_pipeline.engine.planner import Artifact
from collection_pipeline.engine.store.database import BUSY_TIMEOUT_S, Database
from collection_pipeline.engine.store.frames import ARROW, schema_of, to_frame
from collection_pipeline.engine.store.tables import rows_table

_PAGE = 10_000

# ADBC takes the type of a SQLite column from the values it sees first. A first row of our own settles it, whatever is
# missing; it is cut off again.
_TYPE_GIVERS: Mapping[Kind, str] = {
    "text": "''",
    "integer": "0",
    "number": "0.5",
    "boolean": "0",
    "instant": "''",
    "json": "''",
}


def read_all(database: Database, dataset: Dataset, artifact: Artifact, columns: Sequence[Column]) -> pd.DataFrame:
    """All rows in one frame."""
    if database.file is None:
        return to_frame(_read_postgresql(database, dataset, artifact, columns), columns)
    with database.file.lent() as lent:
        if lent:
            return to_frame(_read_sqlite(database, dataset, artifact, columns), columns)
    pages = list(_pages(database, dataset, artifact, columns, _PAGE))
    return to_frame(pa.Table.from_batches(pages, schema=_wire_schema(database, columns)), columns)


def read_in_chunks(
    database: Database, dataset: Dataset, artifact: Artifact, columns: Sequence[Column], rows: int
) -> Iterator[pd.DataFrame]:
    """Frames of at most `rows` rows."""
    for page in _pages(database, dataset, artifact, columns, rows):
        yield to_frame(pa.Table.from_batches([page]), columns)


def _read_sqlite(database: Database, dataset: Dataset, artifact: Artifact, columns: Sequence[Column]) -> pa.Table:
    import adbc_driver_sqlite.dbapi as adbc

    givers = ", ".join(_TYPE_GIVERS[column.kind] for column in columns)
    names = ", ".join(f'"{column.name}"' for column in columns)
    rows = f'SELECT {names} FROM "{rows_table(dataset)}" WHERE run_id = ? AND version = ? ORDER BY row_no'
    with adbc.connect(str(database.path)) as connection, connection.cursor() as cursor:
        cursor.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_S * 1000}")
        cursor.execute(f"SELECT {givers} UNION ALL SELECT * FROM ({rows})", (artifact.run_id, artifact.version))
        table = cursor.fetch_arrow_table()
    return table.slice(1).rename_columns([column.name for column in columns])


def _read_postgresql(database: Database, dataset: Dataset, artifact: Artifact, columns: Sequence[Column]) -> pa.Table:
    import adbc_driver_postgresql.dbapi as adbc

    names = [f'"{column.name}"::text' if column.kind == "json" else f'"{column.name}"' for column in columns]
    # ADBC streams a result by COPY, which takes no parameters, so psycopg renders the values. The server would sort on
    # disk what almost always lies in order already: that is looked at here instead.
    query = SQL("SELECT row_no, {} FROM {} WHERE run_id = {} AND version = {}").format(
        SQL(", ").join(map(SQL, names)), Identifier(rows_table(dataset)), artifact.run_id, artifact.version
    )
    url = database.url.set(drivername="postgresql").render_as_string(hide_password=False)
    with adbc.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(query.as_string())
        table = cursor.fetch_arrow_table()
    numbers = table.column(0).to_numpy()
    if (numbers[1:] < numbers[:-1]).any():
        table = table.sort_by(table.column_names[0])
    return table.remove_column(0).rename_columns([column.name for column in columns])


def _pages(
    database: Database, dataset: Dataset, artifact: Artifact, columns: Sequence[Column], rows: int
) -> Iterator[pa.RecordBatch]:
    """Pages by row number. The rows of a version never change, so each page may be a transaction of its own."""
    is_text = {"json"} if not database.is_sqlite else set()
    names = ", ".join(
        f'CAST("{column.name}" AS text)' if column.kind in is_text else f'"{column.name}"' for column in columns
    )
    query = sa.text(
        f'SELECT {names} FROM "{rows_table(dataset)}" WHERE run_id = :run_id AND version = :version'
        " AND row_no >= :start AND row_no < :stop ORDER BY row_no"
    )
    schema = _wire_schema(database, columns)
    start = 0
    while True:
        bounds = {"start": start, "stop": start + rows}
        with database.read() as connection:
            found = connection.execute(query, {"run_id": artifact.run_id, "version": artifact.version, **bounds}).all()
        if found:
            values: list[tuple[Any, ...]] = list(zip(*found, strict=True))
            arrays = [pa.array(column, type=field.type) for column, field in zip(values, schema, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        if len(found) < rows:
            return
        start += rows


def _wire_schema(database: Database, columns: Sequence[Column]) -> pa.Schema:
    """The types in which the rows come: SQLite has text for instants and integers for booleans."""
    if not database.is_sqlite:
        return schema_of(columns)
    sqlite_types = {"instant": pa.large_string(), "boolean": pa.int64()}
    return pa.schema([(column.name, sqlite_types.get(column.kind, ARROW[column.kind])) for column in columns])
