"""Rows in and out of both databases, data frame to data frame, beside the fastest way there is on each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import adbc_driver_postgresql.dbapi as adbc_postgresql
import adbc_driver_sqlite.dbapi as adbc_sqlite
import pandas as pd
import psycopg
import pyarrow as pa

from benchmarks.measuring import Figure, interleaved, ratio, seconds
from benchmarks.workload import NOW, ZONE
from collection_pipeline.engine.checks import CallCounts, Check, Coverage, Evidence, Schema, UniqueKey, Volume, audit
from collection_pipeline.engine.datasets import DTYPES, Column, Dataset, Kind
from collection_pipeline.engine.holders import Holder
from collection_pipeline.engine.jobs.schema_check import checked
from collection_pipeline.engine.planning.graph import Graph, Job
from collection_pipeline.engine.run_ids import RunId
from collection_pipeline.engine.store import Attempt, Manifest, Published, Store
from collection_pipeline.engine.store.bulk import write_rows
from collection_pipeline.engine.store.database import Database
from collection_pipeline.engine.store.frames import ContentHash, to_arrow
from collection_pipeline.engine.store.tables import ensure_tables
from deploy.postgres.server import PostgresServer

KINDS: dict[str, Kind] = {
    "feature_id": "text",
    "name": "text",
    "category": "text",
    "address": "text",
    "phone": "text",
    "website": "text",
    "best_rank": "integer",
    "review_count": "integer",
    "rating": "number",
    "latitude": "number",
    "longitude": "number",
    "open": "boolean",
    "extra": "json",
    "request_id": "text",
    "fetched_at": "instant",
}
ROWS = Dataset("bench", tuple(Column(name, kind, name) for name, kind in KINDS.items()), key=("feature_id",))
CHECKS: tuple[Check, ...] = (Schema(), UniqueKey(ROWS.key), Coverage(hard=0.8), Volume())
GRAPH = Graph.build([Job(ROWS.name)])
RUN = RunId.parse("2026-11-29")
POSTGRESQL_TYPES = {"text": "text", "integer": "int8", "number": "float8", "boolean": "bool", "instant": "timestamptz"}


def measure(*, quick: bool) -> Iterator[Figure]:
    """SQLite, then PostgreSQL."""
    frame = _frame(20_000 if quick else 100_000)
    rounds = 2 if quick else 5
    with TemporaryDirectory() as folder:
        fresh = partial(_sqlite_url, Path(folder))
        yield from _compare("SQLite", frame, rounds, fresh=fresh, write=_write_adbc_sqlite, read=_read_adbc_sqlite)
        yield from _alike(frame, rounds, fresh)
    with _postgresql() as server, server.new_database() as url:
        yield from _compare(
            "PostgreSQL", frame, rounds, fresh=lambda: url, write=_write_copy, read=_read_adbc_postgresql
        )
    yield from _parts(frame, rounds)


def _compare(
    database: str,
    frame: pd.DataFrame,
    rounds: int,
    *,
    fresh: Callable[[], str],
    write: Callable[[str, pd.DataFrame], float],
    read: Callable[[str], float],
) -> Iterator[Figure]:
    peer_url = fresh()
    taken = interleaved(
        rounds,
        rows=lambda: _write_rows(fresh(), frame),
        peer=lambda: write(peer_url, frame),
        publish=lambda: _publish(fresh(), frame, audited=False),
        audited=lambda: _publish(fresh(), frame, audited=True),
    )
    names = {"rows": "writing", "publish": "writing, hashed, booked", "audited": "writing, hashed, booked, audited"}
    peer = {"SQLite": "ADBC into a bare table", "PostgreSQL": "psycopg binary COPY"}[database]
    for part, name in names.items():
        share, note = ratio(taken["peer"], taken[part])
        at_least = 0.7 if part == "rows" else None
        yield Figure(f"{database}: {name}, of {peer}", share, "x", at_least=at_least, note=note)
    yield Figure(f"{database}: writing", len(frame) / min(taken["rows"]), "rows/s")
    with Store.open(fresh()) as store:
        published = _published(store, frame)
        reading = interleaved(
            rounds, ours=lambda: seconds(lambda: store.read(ROWS, published.artifact)), peer=lambda: read(peer_url)
        )
        assert store.read(ROWS, published.artifact).equals(frame)
    share, note = ratio(reading["peer"], reading["ours"])
    yield Figure(f"{database}: reading, of ADBC", share, "x", at_least=0.8, note=note)
    yield Figure(f"{database}: reading", len(frame) / min(reading["ours"]), "rows/s")


def _alike(frame: pd.DataFrame, rounds: int, fresh: Callable[[], str]) -> Iterator[Figure]:
    """ADBC once more, into the store's own table: its keys tell versions apart, and its log lets readers go on."""
    taken = interleaved(
        rounds, ours=lambda: _write_rows(fresh(), frame), peer=lambda: _write_adbc_alike(fresh(), frame)
    )
    share, note = ratio(taken["peer"], taken["ours"])
    yield Figure("SQLite: writing, of ADBC into the same table", share, "x", at_least=0.7, note=note)


def _parts(frame: pd.DataFrame, rounds: int) -> Iterator[Figure]:
    batch = to_arrow(frame, ROWS)
    taken = interleaved(
        rounds,
        arrow=lambda: seconds(lambda: to_arrow(frame, ROWS)),
        hashing=lambda: seconds(lambda: ContentHash(ROWS).update(batch)),
        schema=lambda: seconds(lambda: list(checked([frame], ROWS, []))),
    )
    names = {"arrow": "frame to Arrow, checked", "hashing": "content hash", "schema": "pandera schema"}
    for part, name in names.items():
        yield Figure(f"beside it: {name}", min(taken[part]) / len(frame) * 1e6, "µs/row")


def _frame(rows: int) -> pd.DataFrame:
    numbers = range(rows)
    payload = json.dumps({f"field_{number:02}": "x" * 34 for number in range(20)}, separators=(",", ":"))
    values: dict[str, Any] = {
        "feature_id": [f"0x47d8a00baf21de75:0x{number:x}" for number in numbers],
        "name": [f"Jade Leaf Tea House {number}" for number in numbers],
        "category": "Tea house",
        "address": [f"{number} Example Street, Exampleton" for number in numbers],
        "phone": [None if number % 3 else "+44 20 7946 0000" for number in numbers],
        "website": "https://jade.example/",
        "best_rank": list(numbers),
        "review_count": [None if number % 5 == 0 else number for number in numbers],
        "rating": [number % 50 / 10 for number in numbers],
        "latitude": [number % 180 - 90.0 for number in numbers],
        "longitude": [number % 360 - 180.0 for number in numbers],
        "open": [number % 2 == 0 for number in numbers],
        "extra": [f'{{"number":{number},"rest":{payload}}}' for number in numbers],
        "request_id": [f"5b0f6c1e-7b1d-4a52-9c39-{number:012}" for number in numbers],
        "fetched_at": datetime(2026, 11, 29, 6, tzinfo=UTC),
    }
    return pd.DataFrame(
        {name: pd.Series(values[name], index=numbers, dtype=DTYPES[kind]) for name, kind in KINDS.items()}
    )


def _sqlite_url(folder: Path) -> str:
    for file in folder.glob("*.db*"):
        file.unlink()
    return f"sqlite:///{folder}/collection.db"


def _beside(url: str) -> str:
    """The peer's own file."""
    return str(Path(url.removeprefix("sqlite:///")).with_name("peer"))


@contextmanager
def _postgresql() -> Iterator[PostgresServer]:
    with TemporaryDirectory(prefix="bench-postgres-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        server = PostgresServer(Path(folder) / "server")
        server.start()
        yield server
        server.stop("immediate")


def _write_rows(url: str, frame: pd.DataFrame) -> float:
    with Store.open(url):
        database = Database(url)
        ensure_tables(database, ROWS)

        def work() -> None:
            with database.write() as connection:
                write_rows(connection, ROWS, str(RUN), 0, [to_arrow(frame, ROWS)])

        taken = seconds(work)
        with database.write() as connection:
            connection.exec_driver_sql("DELETE FROM bench_rows WHERE version = 0")
        database.close()
        return taken


def _publish(url: str, frame: pd.DataFrame, *, audited: bool) -> float:
    with Store.open(url) as store:
        return seconds(lambda: _published(store, frame, audited=audited))


def _published(store: Store, frame: pd.DataFrame, *, audited: bool = False) -> Published:
    store.open_run(RUN, ZONE, GRAPH, NOW)
    attempt = _claimed(store)
    return store.publish(
        attempt,
        ROWS,
        checked([frame], ROWS, []) if audited else [frame],
        lambda staged: audit(CHECKS if audited else (), Evidence(staged, CallCounts())),
        manifest=lambda _: Manifest(),
        now=lambda: NOW,
    )


def _claimed(store: Store) -> Attempt:
    return store.claim(
        str(RUN),
        ROWS.name,
        Holder("benchmark", "host", 1, 0.0),
        GRAPH,
        source="benchmark",
        decide=lambda _: {},
        is_over=lambda _: True,
        now=lambda: NOW,
    )


def _write_adbc_sqlite(url: str, frame: pd.DataFrame) -> float:
    path = _beside(url)
    Path(path).unlink(missing_ok=True)

    def work() -> None:
        with adbc_sqlite.connect(path) as connection, connection.cursor() as cursor:
            cursor.adbc_ingest("peer", pa.Table.from_pandas(frame, preserve_index=False))
            connection.commit()

    return seconds(work)


def _write_adbc_alike(url: str, frame: pd.DataFrame) -> float:
    with Store.open(url):
        database = Database(url)
        ensure_tables(database, ROWS)
        database.close()

    def work() -> None:
        table = pa.Table.from_pandas(frame, preserve_index=False)
        keys = {"row_no": range(len(frame)), "version": [1] * len(frame), "run_id": [str(RUN)] * len(frame)}
        for name, values in keys.items():
            table = table.add_column(0, name, pa.array(values))
        with adbc_sqlite.connect(url.removeprefix("sqlite:///")) as connection, connection.cursor() as cursor:
            cursor.adbc_ingest("bench_rows", table, mode="append")
            connection.commit()

    return seconds(work)


def _read_adbc_sqlite(url: str) -> float:
    def work() -> None:
        with (
            adbc_sqlite.connect(_beside(url)) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute("SELECT * FROM peer")
            cursor.fetch_arrow_table().to_pandas()

    return seconds(work)


def _write_copy(url: str, frame: pd.DataFrame) -> float:
    columns = ", ".join(f"{name} {POSTGRESQL_TYPES.get(kind, kind)}" for name, kind in KINDS.items())
    with psycopg.connect(url) as connection:
        connection.execute("DROP TABLE IF EXISTS peer")
        connection.execute(f"CREATE TABLE peer ({columns})".encode())
        connection.commit()

        def work() -> None:
            values = [column.to_pylist() for column in pa.Table.from_pandas(frame, preserve_index=False).columns]
            with connection.cursor() as cursor, cursor.copy("COPY peer FROM STDIN (FORMAT BINARY)") as copy:
                copy.set_types([POSTGRESQL_TYPES.get(kind, "text") for kind in KINDS.values()])
                for row in zip(*values, strict=True):
                    copy.write_row(row)
            connection.commit()

        return seconds(work)


def _read_adbc_postgresql(url: str) -> float:
    def work() -> None:
        with adbc_postgresql.connect(url) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT * FROM peer")
            cursor.fetch_arrow_table().to_pandas()

    return seconds(work)
