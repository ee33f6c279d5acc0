"""A database that an older version of this program wrote is brought up to date, and its runs go on.

`version_1/` holds such databases as SQL: one run opened in Shanghai whose search is done and whose details failed, and
one that nobody has started.
"""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import psycopg
import pytest
import sqlalchemy as sa

from collection_pipeline.engine.run_ids import RunId
from collection_pipeline.engine.store import Store
from collection_pipeline.engine.store.schema import metadata
from collection_pipeline_tests.store import processes
from collection_pipeline_tests.store.world import World, dataset_of

VERSION_1 = Path(__file__).parent / "version_1"
OLD = "2026-11-28"


@pytest.fixture
def version_1(database_url: str) -> str:
    """The address of such a database, which nobody has opened since."""
    if database_url.startswith("sqlite"):
        with sqlite3.connect(database_url.removeprefix("sqlite:///")) as file:
            file.executescript((VERSION_1 / "sqlite.sql").read_text("utf-8"))
        file.close()
    else:
        with psycopg.connect(database_url) as connection:
            connection.execute((VERSION_1 / "postgresql.sql").read_bytes())
    return database_url


@pytest.fixture
def store_of_version_1(version_1: str) -> Store:
    """Opened by the program of today, which migrates it."""
    return Store.open(version_1)


def test_it_gets_the_tables_of_today(store_of_version_1: Store) -> None:
    with store_of_version_1 as store:
        inspector = sa.inspect(store.database.engine)
        found = {name: [column["name"] for column in inspector.get_columns(name)] for name in metadata.tables}
    assert found == {name: table.columns.keys() for name, table in metadata.tables.items()}


def test_eight_processes_may_open_it_at_once_and_it_is_migrated_once(version_1: str) -> None:
    assert processes.open_at_once(version_1) == [0] * 8
    with Store.open(version_1) as store:
        assert [run.run_id for run in store.open_runs()] == [OLD, "2026-11-29"]


def test_its_runs_keep_the_offset_of_their_moment_and_new_ones_keep_their_zone(store_of_version_1: Store) -> None:
    with store_of_version_1 as store:
        zone = store.run_view(OLD).timezone
        assert zone.utcoffset(datetime.now(UTC)) == timedelta(hours=8)
        assert store.run_view(OLD).moment.astimezone(zone).replace(tzinfo=None) == RunId.parse(OLD).local
        assert World(store).claim("2026-11-29", "search").timezone == zone
        berlin = ZoneInfo("Europe/Berlin")
        store.open_run(RunId.parse("2026-11-30"), berlin, World.graph, datetime.now(UTC))
        assert store.run_view("2026-11-30").timezone == berlin


def test_its_artifacts_are_read_and_built_on(store_of_version_1: Store) -> None:
    with store_of_version_1 as store:
        world = World(store)
        search = world.state(OLD).jobs["search"].current
        assert search is not None
        assert store.read(dataset_of("search"), search)["name"].tolist() == ["Reykjavík", "東京"]
        [details] = world.done(OLD, "details")
        assert details.artifact.as_of == search.as_of
        assert store.credits(OLD).charged == 2
