"""Many rows into one table, by the fastest way of each database that can take part in the transaction that is open.

SQLite: `executemany` on the connection itself. The ADBC driver would be a fifth faster, but it is a connection of its
own and so a transaction of its own. PostgreSQL: binary COPY on the connection itself, the fastest there is.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from collection_pipeline.engine.datasets import Dataset, Kind
from collection_pipeline.engine.store.errors import FrameError
from collection_pipeline.engine.store.tables import KEYS, rows_of

_POSTGRESQL_TYPES: Mapping[Kind, str] = {
    "text": "text",
    "integer": "int8",
    "number": "float8",
    "boolean": "bool",
    # On the wire a timestamptz is an int8: microseconds since 2000-01-01 UTC (PostgreSQL's timestamp.h). Sent as such
    # it need not become a Python datetime first.
    "instant": "int8",
    # And a json is its text.
    "json": "text",
}
_MICROSECONDS_TO_2000 = 946_684_800_000_000


def write_rows(
    connection: sa.Connection, dataset: Dataset, run_id: str, version: int, batches: Iterable[pa.RecordBatch]
) -> int:
    """Write the batches, made by `frames.to_arrow`, as the rows of one version, numbered from 0; returns how many."""
    write = _insert if connection.dialect.name == "sqlite" else _copy
    return write(connection, dataset, run_id, version, batches)


def _insert(
    connection: sa.Connection, dataset: Dataset, run_id: str, version: int, batches: Iterable[pa.RecordBatch]
) -> int:
    statement = str(rows_of(dataset).insert().compile(connection))
    driver: Any = connection.connection.driver_connection
    count = 0
    for batch in batches:
        columns = [_sqlite_values(array) for array in batch.columns]
        numbers = range(count, count + batch.num_rows)
        try:
            # The driver itself takes rows one by one; SQLAlchemy would have them all in a list.
            driver.executemany(statement, zip(repeat(run_id), repeat(version), numbers, *columns, strict=False))
        except sqlite3.IntegrityError as error:
            raise sa.exc.IntegrityError(statement, None, error) from error
        count += batch.num_rows
    return count


def _sqlite_values(array: pa.Array) -> Sequence[Any]:
    if pa.types.is_timestamp(array.type):
        # As text without its zone, then Z: eight times faster than letting Arrow convert to UTC, which it is already.
        array = pc.binary_join_element_wise(array.cast(pa.timestamp("us")).cast(pa.string()), "Z", "")
    values: list[Any] = array.to_pylist()
    return values


def _copy(
    connection: sa.Connection, dataset: Dataset, run_id: str, version: int, batches: Iterable[pa.RecordBatch]
) -> int:
    import psycopg  # not where there is no PostgreSQL

    columns = ", ".join(f'"{name}"' for name in (*KEYS, *(column.name for column in dataset.columns)))
    statement = f'COPY "{dataset.name}_rows" ({columns}) FROM STDIN (FORMAT BINARY)'
    types = ["text", "int4", "int4", *(_POSTGRESQL_TYPES[column.kind] for column in dataset.columns)]
    driver: Any = connection.connection.driver_connection
    count = 0
    try:
        with driver.cursor() as cursor, cursor.copy(statement) as copy:
            copy.set_types(types)
            for row in _rows(run_id, version, batches):
                copy.write_row(row)
                count += 1
    except psycopg.errors.UniqueViolation as error:
        raise sa.exc.IntegrityError(statement, None, error) from error
    except psycopg.errors.InvalidTextRepresentation as error:
        raise FrameError(f"A json column of {dataset.name} has text that is no JSON: {error}") from error
    return count


def _rows(run_id: str, version: int, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    start = 0
    for batch in batches:
        columns = [_postgresql_values(array) for array in batch.columns]
        numbers = range(start, start + batch.num_rows)
        yield from zip(repeat(run_id), repeat(version), numbers, *columns, strict=False)
        start += batch.num_rows


def _postgresql_values(array: pa.Array) -> Sequence[Any]:
    if pa.types.is_timestamp(array.type):
        array = pc.subtract(array.cast(pa.int64()), _MICROSECONDS_TO_2000)
    values: list[Any] = array.to_pylist()
    return values
