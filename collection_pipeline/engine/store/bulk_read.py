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

from collection_pipeline.engine.datasets import Column, Dataset, Kind
from collection_pipeline.engine.planning.state import Artifact
from collection_pipeline.engine.store.database import BUSY_TIMEOUT_S, CONNECT_TIMEOUT_S, Database
from collection_pipeline.engine.store.frames import ARROW, schema_of, to_frame
from collection_pipeline.engine.store.tables import of_version, rows_of

_PAGE = 10_000

# ADBC takes the type of a SQLite column from the values it sees first. A first row of our own settles it, whatever is
# missing; it is cut off again.
_TYPE_GIVERS: Mapping[Kind, sa.ColumnElement[Any]] = {
    "text": sa.literal_column("''"),
    "integer": sa.literal_column("0"),
    "number": sa.literal_column("0.5"),
    "boolean": sa.literal_column("0"),
    "instant": sa.literal_column("''"),
    "json": sa.literal_column("''"),
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

    givers = sa.select(*(_TYPE_GIVERS[column.kind].label(f"column_{place}") for place, column in enumerate(columns)))
    rows = _select(database, dataset, artifact, columns).subquery()
    query = sa.union_all(givers, sa.select(rows)).compile(database.engine)
    values = [query.params[name] for name in query.positiontup or ()]
    # A plain path would make a file that is gone anew, and empty.
    address = f"{database.path.as_uri()}?mode=rw"
    with database.translated(adbc.Error), adbc.connect(address) as connection, connection.cursor() as cursor:
        cursor.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_S * 1000}")
        cursor.execute(str(query), values)
        table = cursor.fetch_arrow_table()
    return table.slice(1).rename_columns([column.name for column in columns])


def _read_postgresql(database: Database, dataset: Dataset, artifact: Artifact, columns: Sequence[Column]) -> pa.Table:
    import adbc_driver_postgresql.dbapi as adbc

    # The server would sort on disk what almost always lies in order already: that is looked at here instead.
    rows = _select(database, dataset, artifact, columns).order_by(None).add_columns(rows_of(dataset).c.row_no)
    # ADBC streams a result by COPY, which takes no parameters, so SQLAlchemy renders the values.
    query = rows.compile(database.engine, compile_kwargs={"literal_binds": True})
    url = database.url.set(drivername="postgresql").update_query_dict({"connect_timeout": str(CONNECT_TIMEOUT_S)})
    address = url.render_as_string(hide_password=False)
    with database.translated(adbc.Error), adbc.connect(address) as connection, connection.cursor() as cursor:
        cursor.execute(str(query))
        table = cursor.fetch_arrow_table()
    numbers = table.column(len(columns)).to_numpy()
    if (numbers[1:] < numbers[:-1]).any():
        table = table.sort_by("row_no")
    return table.remove_column(len(columns)).rename_columns([column.name for column in columns])


def _select(
    database: Database, dataset: Dataset, artifact: Artifact, columns: Sequence[Column]
) -> sa.Select[tuple[Any, ...]]:
    rows = rows_of(dataset)
    as_text = {"json"} if not database.is_sqlite else set()
    chosen = [
        sa.cast(rows.c[column.name], sa.Text).label(column.name) if column.kind in as_text else rows.c[column.name]
        for column in columns
    ]
    return sa.select(*chosen).where(of_version(rows, artifact.run_id, artifact.version)).order_by(rows.c.row_no)


def _pages(
    database: Database, dataset: Dataset, artifact: Artifact, columns: Sequence[Column], size: int
) -> Iterator[pa.RecordBatch]:
    """Pages by row number. The rows of a version never change, so each page may be a transaction of its own."""
    numbers = rows_of(dataset).c.row_no
    query = _select(database, dataset, artifact, columns)
    schema = _wire_schema(database, columns)
    start = 0
    while True:
        with database.read() as connection:
            found = connection.execute(query.where(numbers >= start, numbers < start + size)).all()
        if found:
            values: list[tuple[Any, ...]] = list(zip(*found, strict=True))
            arrays = [pa.array(column, type=field.type) for column, field in zip(values, schema, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        if len(found) < size:
            return
        start += size


def _wire_schema(database: Database, columns: Sequence[Column]) -> pa.Schema:
    """The types in which the rows come: SQLite has text for instants and integers for booleans."""
    if not database.is_sqlite:
        return schema_of(columns)
    sqlite_types = {"instant": pa.large_string(), "boolean": pa.int64()}
    return pa.schema([(column.name, sqlite_types.get(column.kind, ARROW[column.kind])) for column in columns])
